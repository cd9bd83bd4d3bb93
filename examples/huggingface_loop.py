"""A goal in a Hugging Face Trainer: its loss, its metric, its best checkpoint.

    python examples/huggingface_loop.py    # needs: pip install 'setpoint[huggingface]'

A tiny BERT with random weights reads sequences of made-up words; nothing is downloaded. The rare
class is a sequence that holds the word 7.
"""

import tempfile

import torch
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

import setpoint as sp
from setpoint.huggingface import GoalTrainerCallback


class Sequences(torch.utils.data.Dataset):
    """Rows as the Trainer takes them: tokens and labels."""

    def __init__(self, n: int, seed: int) -> None:
        generator = torch.Generator().manual_seed(seed)
        self.tokens = torch.randint(2, 30, (n, 4), generator=generator)
        self.labels = (self.tokens == 7).any(1).long()

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, i: int) -> dict[str, torch.Tensor]:
        return {"input_ids": self.tokens[i], "labels": self.labels[i]}


torch.manual_seed(0)
config = BertConfig(
    vocab_size=30,
    hidden_size=16,
    num_hidden_layers=1,
    num_attention_heads=2,
    intermediate_size=32,
    max_position_embeddings=16,
    num_labels=2,
)
loss = sp.GoalLoss("maximize recall subject to precision >= 0.8")
goal = GoalTrainerCallback(loss)
with tempfile.TemporaryDirectory() as folder:
    trainer = Trainer(
        model=BertForSequenceClassification(config),
        args=TrainingArguments(
            output_dir=folder,
            num_train_epochs=6,
            per_device_train_batch_size=64,
            per_device_eval_batch_size=256,
            learning_rate=1e-2,
            eval_strategy="epoch",
            save_strategy="epoch",
            metric_for_best_model="goal",
            greater_is_better=True,
            load_best_model_at_end=True,
            average_tokens_across_devices=False,
            report_to="none",
            disable_tqdm=True,
            use_cpu=not torch.cuda.is_available(),
        ),
        train_dataset=Sequences(4000, 0),
        eval_dataset=Sequences(1000, 1),
        compute_loss_func=goal.compute_loss,
        compute_metrics=goal.compute_metrics,
        callbacks=[goal],
    )
    trainer.train()
    rule = goal.rule  # of the best checkpoint, whose weights the model has now
    print(rule.sentence())
    later = trainer.predict(Sequences(1000, 2))
logits = later.predictions[:, 1] - later.predictions[:, 0]
print(sp.evaluate(rule, later.label_ids, logits))  # rows that nothing was chosen on
