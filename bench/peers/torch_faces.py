"""What trains face embeddings in PyTorch as Ringlet does (docs/faces.md): iresnet18, a LeNet, and centres of classes with a
loss of cosines with a margin. Others here call it. It needs nothing but PyTorch.
"""

import math

import torch
from torch import nn
from torch.nn import functional


class FaceBlock(nn.Module):
    """Norm first, nothing behind the sum; where a stage begins, a shortcut of 1 x 1."""

    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.bn1 = nn.BatchNorm2d(inputs)
        self.conv1 = nn.Conv2d(inputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.prelu = nn.PReLU(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, stride, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(outputs)
        self.downsample = None
        if stride != 1:
            self.downsample = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x):
        y = self.bn3(self.conv2(self.prelu(self.bn2(self.conv1(self.bn1(x))))))
        return y + (x if self.downsample is None else self.downsample(x))


def iresnet18(side, size):
    """Convolutions N(0, 0.1^2), all else PyTorch's own start; the last norm's weight is not learnt."""
    layers, inputs = [nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.BatchNorm2d(64), nn.PReLU(64)], 64
    for outputs in (64, 128, 256, 512):
        layers += [FaceBlock(inputs, outputs, 2), FaceBlock(outputs, outputs, 1)]
        inputs = outputs
    features = nn.BatchNorm1d(size)
    features.weight.requires_grad = False
    net = nn.Sequential(*layers, nn.BatchNorm2d(512), nn.Flatten(), nn.Linear(512 * math.ceil(side / 16) ** 2, size),
                        features)
    for module in net.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.normal_(module.weight, 0, 0.1)
    return net


def lenet(side, size):
    """Ringlet's lenet: Kaiming's normal weights, biases that begin at 0."""
    after = ((side - 2) // 2 - 4) // 2
    net = nn.Sequential(nn.Conv2d(3, 20, 3), nn.ReLU(), nn.AvgPool2d(2), nn.Conv2d(20, 50, 5), nn.ReLU(), nn.AvgPool2d(2),
                        nn.Flatten(), nn.Linear(50 * after * after, 128), nn.ReLU(), nn.Linear(128, size))
    for module in net.modules():
        if isinstance(module, (nn.Conv2d, nn.Linear)):
            nn.init.kaiming_normal_(module.weight)
            nn.init.zeros_(module.bias)
    return net


MODELS = {"lenet": lenet, "iresnet18": iresnet18}


class Centres(nn.Module):
    """The mean loss of ArcFace, or with a margin of 0 NormFace's. Beyond pi - margin the margin is what everybody's ArcFace has
    there: cos - m sin m."""

    def __init__(self, classes, size, scale):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(classes, size) * 0.01)
        self.scale = scale

    def forward(self, embeddings, labels, margin):
        cosines = (functional.normalize(embeddings) @ functional.normalize(self.weight).T).clamp(-1, 1)
        if margin > 0:
            own = cosines.gather(1, labels[:, None])
            sines = (1 - own * own).clamp_min(1e-12).sqrt()
            turned = own * math.cos(margin) - sines * math.sin(margin)
            turned = torch.where(own > -math.cos(margin), turned, own - margin * math.sin(margin))
            cosines = cosines.scatter(1, labels[:, None], turned)
        return functional.cross_entropy(self.scale * cosines, labels)


def symmetric(images):
    """Pixels from -1 to 1."""
    return images.float() / 127.5 - 1


def train(recipe, seed, images, labels, progress=lambda text: None):
    """SGD with Nesterov's momentum and PyTorch's one-cycle rate. The gradient of the model alone is clipped, and the margin
    grows along a line in the first epochs, as in Ringlet. Returns the model and the last epoch's loss."""
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    net = MODELS[recipe.model](images.shape[-1], recipe.size)
    centres = Centres(int(labels.max()) + 1, recipe.size, recipe.scale)
    learnt = [p for p in net.parameters() if p.requires_grad]
    optimizer = torch.optim.SGD([*learnt, centres.weight], lr=recipe.lr, momentum=0.9, nesterov=True, weight_decay=5e-4)
    steps = -(-len(labels) // recipe.batch)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, recipe.lr, total_steps=recipe.epochs * steps,
                                                   cycle_momentum=False)
    done, mean = 0, 0.0
    for epoch in range(recipe.epochs):
        net.train()
        total = 0.0
        for chosen in torch.randperm(len(labels), generator=generator).split(recipe.batch):
            margin = recipe.margin * min(1.0, done / (recipe.warmup * steps)) if recipe.warmup else recipe.margin
            loss = centres(net(symmetric(images[chosen])), labels[chosen], margin)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(learnt, recipe.clip)
            optimizer.step()
            schedule.step()
            total += loss.item() * len(chosen)
            done += 1
        mean = total / len(labels)
        progress(f"epoch {epoch + 1} of {recipe.epochs}: loss {mean:.4f}")
    return net, mean
