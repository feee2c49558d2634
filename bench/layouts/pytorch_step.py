"""The training step of run.sh's model in PyTorch: same layers, shapes and number of parameters, AdamW, one thread a rank, Gloo over
loopback. usage: torchrun --nproc-per-node N pytorch_step.py single|ddp|fsdp2 fp32|bf16 STEPS. Rank 0 prints one JSON line."""
import json, statistics, sys, time

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F

WIDTH, DEPTH, HEADS, PATCH, TEXT_TOKENS, IMAGE_TOKENS, BATCH = 384, 15, 6, 4, 64, 256, 8


def attend(q, k, v, mask=None):
    def heads(x):
        return x.unflatten(-1, (HEADS, -1)).transpose(1, 2)
    return F.scaled_dot_product_attention(heads(q), heads(k), heads(v), mask).transpose(1, 2).flatten(2)


class TextBlock(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.proj = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.fc1, self.fc2 = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x, mask):
        q, k, v = self.qkv(self.norm1(x)).chunk(3, -1)
        x = x + self.proj(attend(q, k, v, mask))
        return x + self.fc2(F.gelu(self.fc1(self.norm2(x)), approximate="tanh"))


class DiffusionBlock(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Parameter(torch.randn(6, WIDTH) / WIDTH**0.5)
        self.qkv, self.proj = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.q, self.kv, self.cross = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.fc1, self.fc2 = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x, text, modulation, mask):
        m = (modulation + self.table).chunk(6, 1)
        q, k, v = self.qkv(F.layer_norm(x, (WIDTH,), eps=1e-6) * (1 + m[1]) + m[0]).chunk(3, -1)
        x = x + m[2] * self.proj(attend(q, k, v))
        k, v = self.kv(text).chunk(2, -1)
        x = x + self.cross(attend(self.q(x), k, v, mask))
        inner = F.layer_norm(x, (WIDTH,), eps=1e-6) * (1 + m[4]) + m[3]
        return x + m[5] * self.fc2(F.gelu(self.fc1(inner), approximate="tanh"))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(258, WIDTH)
        self.text = TextBlock()
        self.text_norm = nn.LayerNorm(WIDTH)
        self.time1, self.time2 = nn.Linear(256, WIDTH), nn.Linear(WIDTH, WIDTH)
        self.caption, self.modulation = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, 6 * WIDTH)
        self.patch = nn.Linear(3 * PATCH**2, WIDTH)
        self.blocks = nn.ModuleList(DiffusionBlock() for _ in range(DEPTH))
        self.table = nn.Parameter(torch.randn(2, WIDTH) / WIDTH**0.5)
        self.out = nn.Linear(WIDTH, 3 * PATCH**2)

    def forward(self, patches, features, tokens, mask):
        text = self.text_norm(self.text(self.words(tokens), mask))
        condition = self.time2(F.silu(self.time1(features))) + self.caption(text.mean(1))
        modulation = self.modulation(F.silu(condition)).unflatten(-1, (6, WIDTH))
        x = self.patch(patches)
        for block in self.blocks:
            x = block(x, text, modulation, mask)
        m = (condition.unsqueeze(1) + self.table).chunk(2, 1)
        return self.out(F.layer_norm(x, (WIDTH,), eps=1e-6) * (1 + m[1]) + m[0])


def build(mode, dtype):
    torch.manual_seed(0)
    model = Model()
    if mode == "ddp":
        return nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=True)
    if mode == "fsdp2":
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
        policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16) if dtype == "bf16" else MixedPrecisionPolicy()
        mesh = init_device_mesh("cpu", (dist.get_world_size(),))
        for block in model.blocks:
            fully_shard(block, mesh=mesh, mp_policy=policy)
        fully_shard(model, mesh=mesh, mp_policy=policy)
    return model


def main():
    mode, dtype, steps = sys.argv[1], sys.argv[2], int(sys.argv[3])
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    model = build(mode, dtype)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, foreach=True)
    torch.manual_seed(1 + dist.get_rank())
    patches, target = torch.randn(2, BATCH, IMAGE_TOKENS, 3 * PATCH**2)
    features, tokens = torch.randn(BATCH, 256), torch.randint(0, 256, (BATCH, TEXT_TOKENS))
    mask = torch.ones(BATCH, 1, 1, TEXT_TOKENS, dtype=torch.bool)
    walls, cpus = [], []
    for _ in range(steps):
        dist.barrier()
        wall, cpu = time.perf_counter(), time.process_time()
        with torch.autocast("cpu", torch.bfloat16, enabled=dtype == "bf16"):
            prediction = model(patches, features, tokens, mask)
        F.mse_loss(prediction.float(), target).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        dist.barrier()
        walls.append(time.perf_counter() - wall)
        cpus.append(time.process_time() - cpu)
    if dist.get_rank() == 0:
        print(json.dumps({"wall": statistics.median(walls[2:]), "cpu": statistics.median(cpus[2:]),
                          "params": sum(p.numel() for p in Model().parameters())}))
    dist.barrier()
    dist.destroy_process_group()


main()
