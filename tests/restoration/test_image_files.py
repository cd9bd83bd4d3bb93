"""Images in files: what is known of their range, what has to be stated, layouts, mistakes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from setpoint import DataError, FileError
from setpoint.restoration.image_files import as_png, padded, read_pictures, read_png

GREY, COLOUR = (1, 6, 5), (3, 6, 5)
rng = np.random.default_rng(0)
BYTES = rng.integers(0, 256, (6, 5), dtype=np.uint8)


@pytest.mark.parametrize(
    ("array", "expected", "count"),
    [
        (np.zeros((6, 5)), GREY, 1),
        (np.zeros((1, 6, 5)), GREY, 1),
        (np.zeros((4, 6, 5)), GREY, 4),
        (np.zeros((4, 1, 6, 5)), GREY, 4),
        (np.zeros((4, 6, 5, 1)), GREY, 4),
        (np.zeros((3, 6, 5)), COLOUR, 1),
        (np.zeros((6, 5, 3)), COLOUR, 1),
        (np.zeros((4, 6, 5, 3)), COLOUR, 4),
        (np.zeros((4, 3, 6, 5)), COLOUR, 4),
        (np.zeros((2, 7)), (7,), 2),
    ],
)
def test_layouts_are_told_apart_by_the_shape_that_is_due(tmp_path, array, expected, count):
    array = array + np.arange(array.size).reshape(array.shape)
    np.save(tmp_path / "a.npy", array)
    found = read_pictures(tmp_path / "a.npy", expected)
    assert found.values.shape == (count, *expected)
    assert len(set(found.names)) == count
    if array.shape[-1] == 3:  # pixel by pixel the colours are those of the file
        np.testing.assert_array_equal(np.moveaxis(found.values, 1, 3).ravel(), array.ravel())
    else:
        np.testing.assert_array_equal(found.values.ravel(), array.ravel())


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([(0.0, 1.0), (-1.0, 1.0), (0.0, 255.0)]))
def test_eight_bits_survive_any_range(tmp_path_factory, seed, box):
    image = np.random.default_rng(seed).integers(0, 256, (3, 4, 5), dtype=np.uint8)
    path = tmp_path_factory.mktemp("png") / "a.png"
    path.write_bytes(as_png(box[0] + (box[1] - box[0]) * image / 255.0, box))
    found = read_pictures(path, (3, 4, 5))
    np.testing.assert_array_equal(found.values[0], image)
    np.testing.assert_allclose(
        found.within(box)[0], box[0] + (box[1] - box[0]) * image / 255.0, atol=1e-4
    )


@pytest.mark.parametrize(
    ("dtype", "scale", "known"),
    [(np.uint8, 255, (0, 255)), (bool, 1, (0, 1)), (np.float32, 255, None), (np.uint16, 255, None)],
)
def test_only_bytes_and_booleans_say_their_range(tmp_path, dtype, scale, known):
    values = (scale * (BYTES > 100)).astype(dtype)
    np.save(tmp_path / "a.npy", values)
    found = read_pictures(tmp_path / "a.npy", GREY)
    assert found.range == known
    if known is None:
        with pytest.raises(DataError, match="does not say what black and white are"):
            found.within((0.0, 1.0))
    stated = None if known else (0.0, 255.0)
    np.testing.assert_allclose(found.within((0.0, 1.0), stated)[0, 0], BYTES > 100)


def test_a_range_that_is_known_is_not_overruled(tmp_path):
    np.save(tmp_path / "a.npy", BYTES)
    with pytest.raises(DataError, match=r"holds uint8, whose range is 0,255; range 0,1 was stated"):
        read_pictures(tmp_path / "a.npy", GREY).within((0.0, 1.0), (0.0, 1.0))


def test_deep_pngs(tmp_path):
    deep = BYTES.astype(np.uint16) * 257
    Image.fromarray(deep).save(tmp_path / "a.png")
    found = read_pictures(tmp_path / "a.png", GREY)
    assert found.range == (0, 65535)
    np.testing.assert_allclose(found.within((0.0, 1.0))[0, 0], BYTES / 255.0, atol=1e-6)


@pytest.mark.parametrize(("mode", "channels"), [("L", 1), ("1", 1), ("P", 3), ("RGB", 3)])
def test_modes_of_png(tmp_path, mode, channels):
    Image.fromarray(BYTES).convert(mode).save(tmp_path / "a.png")
    values, box = read_png(tmp_path / "a.png")
    assert (values.shape[0], box) == (channels, (0, 255))
    if mode != "1":
        np.testing.assert_array_equal(values[0], BYTES)


def test_a_png_is_one_image_whatever_its_channels(tmp_path):
    (tmp_path / "folder").mkdir()
    for path in (tmp_path / "a.png", tmp_path / "folder" / "a.png"):
        Image.fromarray(np.dstack([BYTES, BYTES, 255 - BYTES])).save(path)
    for path in (tmp_path / "a.png", tmp_path / "folder"):
        assert read_pictures(path, COLOUR).values.shape == (1, *COLOUR)
        for due in (GREY, GREY[1:]):
            with pytest.raises(DataError, match=r"has shape \(3, 6, 5\); images of"):
                read_pictures(path, due)
        with pytest.raises(DataError, match="it is a colour image, and the prior makes grey ones"):
            read_pictures(path, GREY)
    Image.fromarray(BYTES).save(tmp_path / "grey.png")
    np.testing.assert_array_equal(read_pictures(tmp_path / "grey.png", (6, 5)).values, [BYTES])
    with pytest.raises(DataError, match="it is a grey image, and the prior makes colour ones"):
        read_pictures(tmp_path / "grey.png", COLOUR)


def test_a_palette_of_greys_is_grey_where_that_is_due(tmp_path):
    Image.fromarray(BYTES).convert("P").save(tmp_path / "grey.png")
    found = read_pictures(tmp_path / "grey.png", GREY).values
    np.testing.assert_array_equal(found, BYTES[None, None])
    assert read_pictures(tmp_path / "grey.png", COLOUR).values.shape == (1, *COLOUR)
    colours = Image.fromarray(BYTES % 2).convert("P")
    colours.putpalette([255, 0, 0, 0, 255, 0])
    colours.save(tmp_path / "colours.png")
    Image.fromarray(BYTES).convert("RGB").save(tmp_path / "rgb.png")
    for name in ("colours.png", "rgb.png"):
        with pytest.raises(DataError, match="it is a colour image"):
            read_pictures(tmp_path / name, GREY)


def test_two_files_of_one_name_are_refused(tmp_path):
    for name, value in (("a.png", 1), ("a.PNG", 2), ("b.png", 3)):
        Image.fromarray(np.full((6, 5), value, np.uint8)).save(tmp_path / name, format="PNG")
    if len(list(tmp_path.iterdir())) < 3:
        pytest.skip("this disk does not tell a.png from a.PNG")
    assert read_pictures(tmp_path, GREY, first=1).names == ("a",)
    with pytest.raises(FileError, match=r'"a\.PNG" and "a\.png" .* are both called "a"'):
        read_pictures(tmp_path, GREY)


ENDLESS = [(-np.inf, np.inf), (0.0, np.inf)]


@pytest.mark.parametrize("box", ENDLESS)
def test_a_range_without_ends_takes_floats_as_they_stand(tmp_path, box):
    values = np.linspace(-3, 700, 30).reshape(6, 5)
    np.save(tmp_path / "a.npy", values)
    found = read_pictures(tmp_path / "a.npy", GREY)
    np.testing.assert_array_equal(found.within(box)[0, 0], values.astype(np.float32))
    with pytest.raises(DataError, match="has no ends to bring it to: give floats in the prior's"):
        found.within(box, (0.0, 255.0))
    np.save(tmp_path / "b.npy", BYTES)
    with pytest.raises(DataError, match=r"has the range 0,255, and the prior's, .*,inf, has no"):
        read_pictures(tmp_path / "b.npy", GREY).within(box)


def test_the_sentence_about_several_arrays_names_its_option(tmp_path):
    np.savez(tmp_path / "two.npz", x=BYTES, y=BYTES)
    for option, said in (
        ("--truth-array", "say which, --truth-array NAME."),
        (None, "give a file that holds one."),
    ):
        with pytest.raises(FileError) as error:
            read_pictures(tmp_path / "two.npz", GREY, option=option)
        assert str(error.value).endswith(f"holds x, y; {said}")


def test_a_folder_is_read_by_name(tmp_path):
    for name, value in (("b", 2), ("a", 1), ("c", 3)):
        Image.fromarray(np.full((6, 5), value, np.uint8)).save(tmp_path / f"{name}.png")
    (tmp_path / "notes.txt").write_text("not an image")
    found = read_pictures(tmp_path, GREY, first=2)
    assert found.names == ("a", "b")
    assert found.values[:, 0, 0, 0].tolist() == [1, 2]


def test_a_frame():
    framed = padded(np.ones((1, 1, 2, 2)), 1, -1.0)
    assert framed.shape == (1, 1, 4, 4)
    assert framed.sum() == 4 - 12


def _save(folder):
    np.save(folder / "odd.npy", np.zeros((2, 9, 9)))
    np.save(folder / "colour.npy", np.zeros((6, 5, 3)))
    np.save(folder / "grey.npy", np.zeros((6, 5)))
    np.save(folder / "nan.npy", np.full((6, 5), np.nan))
    np.save(folder / "words.npy", np.full((6, 5), "a"))
    np.save(folder / "none.npy", np.zeros((0, 1, 6, 5)))
    np.savez(folder / "two.npz", x=np.zeros((6, 5)), y=np.zeros((6, 5)))
    np.save(folder / "objects.npy", np.array([{}], dtype=object), allow_pickle=True)
    (folder / "bad.png").write_bytes(b"GIF89a")
    (folder / "x.jpg").write_bytes(b"")
    Image.fromarray(np.dstack([BYTES] * 4)).save(folder / "alpha.png")
    (folder / "empty").mkdir()
    (folder / "sizes").mkdir()
    for name, size in (("a", (6, 5)), ("b", (5, 6))):
        Image.fromarray(np.zeros(size, np.uint8)).save(folder / "sizes" / f"{name}.png")


@pytest.mark.parametrize(
    ("name", "expected", "kind", "said"),
    [
        ("no.png", GREY, FileError, "there is no file"),
        ("x.jpg", GREY, FileError, "is not read: give .png, .npy, .npz or a folder of .png"),
        ("bad.png", GREY, FileError, "cannot be read as .png"),
        ("alpha.png", COLOUR, FileError, "save it without alpha"),
        ("odd.npy", GREY, DataError, "has shape (2, 9, 9); images of 1 × 6 × 5 are due"),
        ("colour.npy", GREY, DataError, "it is a colour image, and the prior makes grey ones"),
        ("nan.npy", GREY, DataError, "no numbers"),
        ("words.npy", GREY, FileError, "images are numbers"),
        ("none.npy", GREY, DataError, "holds no image"),
        ("two.npz", GREY, FileError, "holds x, y; say which"),
        ("objects.npy", GREY, FileError, "cannot be read as .npy"),
        ("empty", GREY, FileError, "holds no .png"),
        ("sizes", GREY, DataError, "has shape (1, 5, 6); images of 1 × 6 × 5"),
    ],
)
def test_mistakes(tmp_path, name, expected, kind, said):
    _save(tmp_path)
    with pytest.raises(kind) as error:
        read_pictures(tmp_path / name, expected)
    assert said in str(error.value)
