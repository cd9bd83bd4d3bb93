"""GoalTrainerCallback: loss, exact goal, best checkpoint and resumed runs of a Trainer."""

import pytest
import torch
from torch import nn

import setpoint as sp

transformers = pytest.importorskip("transformers")
pytest.importorskip("accelerate")

from setpoint.huggingface import FILE, GoalTrainerCallback  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:.*pin_memory.*", "ignore::DeprecationWarning")
GOAL = "maximize recall subject to precision >= 0.5"


class Rows(torch.utils.data.Dataset):
    """Rows as the Trainer takes them."""

    def __init__(self, n=256, seed=0):
        rng = torch.Generator().manual_seed(seed)
        self.x = torch.randn(n, 3, generator=rng)
        self.y = (self.x[:, 0] + 0.5 * torch.randn(n, generator=rng) > 0.8).long()

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return {"x": self.x[i], "labels": self.y[i]}


class Classifier(nn.Module):
    """A linear model with one output or two."""

    def __init__(self, outputs=1):
        super().__init__()
        torch.manual_seed(0)
        self.linear = nn.Linear(3, outputs)

    def forward(self, x, labels=None):
        return {"logits": self.linear(x)}


def trainer_of(model, goal, folder, epochs=3, **options):
    known = dict(
        output_dir=str(folder),
        num_train_epochs=epochs,
        per_device_train_batch_size=32,
        per_device_eval_batch_size=64,
        learning_rate=0.05,
        eval_strategy="epoch",
        save_strategy="epoch",
        logging_strategy="epoch",
        report_to="none",
        disable_tqdm=True,
        use_cpu=True,
        seed=3,
        remove_unused_columns=False,
        dataloader_pin_memory=False,
    )
    return transformers.Trainer(
        model=model,
        args=transformers.TrainingArguments(**{**known, **options}),
        train_dataset=Rows(),
        eval_dataset=Rows(200, 1),
        compute_loss_func=goal.compute_loss,
        compute_metrics=goal.compute_metrics,
        callbacks=[goal],
    )


@pytest.mark.parametrize("outputs", [1, 2])
def test_the_goal_is_logged_as_it_is(outputs, tmp_path):
    model = Classifier(outputs)
    goal = GoalTrainerCallback(sp.GoalLoss(GOAL, guard=True))
    trainer = trainer_of(model, goal, tmp_path)
    trainer.train()
    rows = Rows(200, 1)
    with torch.no_grad():
        z = model.linear(rows.x)
    z = z[:, 1] - z[:, 0] if outputs == 2 else z[:, 0]
    rule = sp.tune(GOAL, rows.y, z.double(), task=sp.Task.binary(score="logit"))
    assert goal.rule.threshold == pytest.approx(rule.threshold)
    logged = [row for row in trainer.state.log_history if "eval_goal" in row]
    assert len(logged) == 3
    assert logged[-1]["eval_goal"] == pytest.approx(rule.value)
    assert logged[-1]["eval_goal_feasible"] == rule.feasible
    status = goal.loss.status()
    assert logged[-1]["eval_train_held"] == status.held
    assert logged[-1]["eval_train_constraint_1"] == pytest.approx(status.constraints[0].value)
    assert goal.loss.training  # as it was; an evaluation teaches it nothing
    steps = int(goal.loss.steps)
    assert steps == trainer.state.global_step
    trainer.evaluate()
    assert int(goal.loss.steps) == steps


def test_accumulation_gives_the_step_of_the_whole_batch(tmp_path):
    ends = []
    for parts in (1, 2):
        goal = GoalTrainerCallback(sp.GoalLoss(GOAL, "costs", accumulate=parts))
        model = Classifier()
        trainer = trainer_of(
            model,
            goal,
            tmp_path,
            per_device_train_batch_size=32 // parts,
            gradient_accumulation_steps=parts,
            save_strategy="no",
            optim="sgd",
        )
        trainer.train()
        ends.append(model.linear.weight.detach().clone())
    assert torch.allclose(*ends, atol=1e-5)


def test_another_accumulation_is_refused(tmp_path):
    goal = GoalTrainerCallback(sp.GoalLoss(GOAL))
    with pytest.raises(sp.KindError, match="accumulates 2 batches"):
        trainer_of(Classifier(), goal, tmp_path, gradient_accumulation_steps=2).train()


def test_a_resumed_run_ends_in_the_same_bits(tmp_path):
    ends = []
    for resumed in (False, True):
        folder = tmp_path / str(resumed)
        goal = GoalTrainerCallback(sp.GoalLoss(GOAL, guard=True))
        model = Classifier()
        trainer_of(model, goal, folder, epochs=4).train()
        if resumed:
            goal = GoalTrainerCallback(sp.GoalLoss(GOAL, guard=True))
            model = Classifier()
            second = folder / "checkpoint-16"
            assert (second / FILE).exists()
            trainer_of(model, goal, folder, epochs=4).train(resume_from_checkpoint=str(second))
        ends.append((model.state_dict(), goal.loss.state_dict(), goal.rule.threshold))
    assert ends[0][2] == ends[1][2]
    for a, b in zip(ends[0][:2], ends[1][:2], strict=True):
        for name, x in a.items():
            assert torch.equal(x, b[name]), name


def test_a_checkpoint_without_the_loss_is_told(tmp_path, caplog):
    goal = GoalTrainerCallback(sp.GoalLoss(GOAL, guard=True))
    trainer_of(Classifier(), goal, tmp_path, epochs=2).train()
    (tmp_path / "checkpoint-8" / FILE).unlink()
    again = GoalTrainerCallback(sp.GoalLoss(GOAL, guard=True))
    trainer = trainer_of(Classifier(), again, tmp_path, epochs=2)
    trainer.train(resume_from_checkpoint=str(tmp_path / "checkpoint-8"))
    assert "the loss starts anew" in caplog.text


def test_the_rule_is_that_of_the_best_checkpoint(tmp_path):
    goal = GoalTrainerCallback(sp.GoalLoss(GOAL, "costs"))
    model = Classifier()
    trainer = trainer_of(
        model,
        goal,
        tmp_path,
        epochs=8,
        learning_rate=5.0,
        lr_scheduler_type="constant",
        load_best_model_at_end=True,
        metric_for_best_model="goal",
        greater_is_better=True,
    )
    trainer.train()
    values = [row["eval_goal"] for row in trainer.state.log_history if "eval_goal" in row]
    best = max(values)
    assert values[-1] < best  # so that the last rule is another one
    assert goal.rule.value == pytest.approx(best)
    rows = Rows(200, 1)
    with torch.no_grad():
        z = model.linear(rows.x)[:, 0].double()
    assert sp.evaluate(goal.rule, rows.y, z).value == pytest.approx(best)


def test_what_it_cannot_train_is_refused():
    with pytest.raises(sp.KindError, match="not of a regression task"):
        GoalTrainerCallback(sp.GoalLoss("minimize mae", "errors", task="regression"))
    task = sp.Task.binary(groups={"sex": ["f", "m"]})
    loss = sp.GoalLoss('maximize recall subject to gap(recall, by="sex") <= 0.1', task=task)
    with pytest.raises(sp.KindError, match="labels to a loss and no groups"):
        GoalTrainerCallback(loss)
    goal = GoalTrainerCallback(sp.GoalLoss(GOAL))
    with pytest.raises(sp.DataError, match='no "labels"'):
        goal.compute_loss({"logits": torch.zeros(2, 1)}, None)
