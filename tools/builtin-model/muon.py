"""Muon: momentum whose update of each matrix is made orthogonal, which learns more from each token than AdamW."""

import torch

NEWTON_SCHULZ = (3.4445, -4.7750, 2.0315)
STEPS = 5


def orthogonal(batch):
    """The nearest (nearly) orthogonal matrices to a batch of matrices [n, rows, columns]."""
    a, b, c = NEWTON_SCHULZ
    tall = batch.shape[1] > batch.shape[2]
    x = batch.transpose(1, 2) if tall else batch
    x = x / (x.norm(dim=(1, 2), keepdim=True) + 1e-7)
    for _ in range(STEPS):
        square = x @ x.transpose(1, 2)
        x = a * x + (b * square + c * square @ square) @ x
    return x.transpose(1, 2) if tall else x


class Muon(torch.optim.Optimizer):
    """Matrices of one shape are handled together."""

    def __init__(self, params, lr=0.0, momentum=0.95, weight_decay=0.0):
        super().__init__(params, {"lr": lr, "momentum": momentum, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            shapes = {}
            for param in group["params"]:
                shapes.setdefault(tuple(param.shape), []).append(param)
            for (rows, columns), params in shapes.items():
                updates = orthogonal(torch.stack([self.momentum_of(param, group["momentum"]) for param in params]))
                scale = group["lr"] * max(1.0, rows / columns) ** 0.5
                for param, update in zip(params, updates):
                    param.mul_(1 - group["lr"] * group["weight_decay"]).add_(update, alpha=-scale)

    def momentum_of(self, param, momentum):
        """Nesterov momentum of the gradient."""
        state = self.state[param]
        if "momentum" not in state:
            state["momentum"] = torch.zeros_like(param)
        state["momentum"].lerp_(param.grad, 1 - momentum)
        return param.grad.lerp(state["momentum"], momentum)
