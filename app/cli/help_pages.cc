#include <algorithm>

#include "app/cli/help.h"

namespace ringlet::app {

namespace {

const std::vector<HelpPage>& help_pages() {
  static const std::vector<HelpPage> pages{
      {"ringlet",
       {{"ringlet train --replicas 2 --out runs/first", "LeNet on Fashion-MNIST, two replicas"},
        {"ringlet report runs/first", "one page that shows how it went"},
        {"ringlet bench all-reduce --end 64K", "which all-reduce is the fastest here"}}},
      {"ringlet train",
       {{"ringlet train --replicas 2 --out runs/first", "six epochs, about 91 %"},
        {"ringlet train --data photos",
         "photographs, photos/CLASS/*: split, size, model and recipe follow from them"},
        {"ringlet train --seeds 1,2,3 --sweep lr=0.1,0.2", "which rate is better, and is it"}},
       {"--model", "--data", "--epochs", "--batch-size", "--lr", "--image-size", "--augment",
        "--init", "--seeds", "--sweep", "--replicas", "--threads", "--device", "--processes",
        "--sync", "--out", "--resume"}},
      {"ringlet eval",
       {{"ringlet eval --checkpoint runs/first", "loss and accuracy, by class"},
        {"ringlet eval --checkpoint lenet.safetensors --model lenet", "weights from elsewhere"},
        {"ringlet eval --checkpoint runs/first --replicas 4", "the same numbers, sooner"}},
       {"--checkpoint", "--model", "--data", "--data-dir", "--replicas", "--threads", "--device",
        "--processes"}},
      {"ringlet verify",
       {{"ringlet verify --checkpoint runs/faces lfw.bin", "accuracy of ten folds, TAR@FAR"},
        {"ringlet verify --checkpoint runs/faces a.bin pairs.txt --out roc", "roc/roc.csv as well"},
        {"ringlet verify --checkpoint runs/faces lfw.bin --replicas 4",
         "the same numbers, sooner"}},
       {"--checkpoint", "--flip", "--json", "--out", "--replicas", "--threads", "--device",
        "--processes"}},
      {"ringlet predict",
       {{"ringlet predict --checkpoint runs/first shoe.jpg", "what is in a picture"},
        {"ringlet predict --checkpoint runs/first --top 3 pictures", "of a whole folder"},
        {"ringlet predict --checkpoint runs/first --data fashion-mnist --out logits.safetensors",
         "a data set's logits"}},
       {"--checkpoint", "--top", "--invert", "--levels", "--save-input", "--json", "--data",
        "--split", "--out", "--device"}},
      {"ringlet export",
       {{"ringlet export --checkpoint runs/first --onnx lenet.onnx", "for other programs"}}},
      {"ringlet convert",
       {{"ringlet convert lfw.bin --out lfw", "pictures as they are, and pairs.txt"},
        {"ringlet convert train.rec --out faces", "a folder for each identity"},
        {"ringlet convert faces --out train.rec", "and the way back, with train.idx"}}},
      {"ringlet report",
       {{"ringlet report runs/first", "writes report.html"},
        {"ringlet report runs/first --follow", "a page that grows while the run goes on"},
        {"ringlet report runs/first runs/second --out both.html", "compares two runs"}}},
      {"ringlet bench",
       {{"ringlet bench train --replicas 2", "samples a second, time by phase"},
        {"ringlet bench all-reduce --end 64K", "every strategy's time by size"}}},
      {"ringlet bench train",
       {{"ringlet bench train --replicas 2", "samples a second, time by phase"},
        {"ringlet bench train --model lenet --layout nchw", "another network, another layout"},
        {"ringlet bench train --replicas 4 --sync tree --json speed.json", "for programs"}},
       {"--model", "--batch-size", "--replicas", "--threads", "--device", "--layout", "--sync",
        "--overlap", "--exact", "--warm-up", "--steps", "--json"}},
      {"ringlet bench all-reduce",
       {{"ringlet bench all-reduce --end 64K --report page.html", "a page with plots and models"},
        {"ringlet bench all-reduce --ranks 2,4 --strategies ring,tree", "two ways, side by side"},
        {"ringlet bench all-reduce --processes --transport gloo", "over the loopback"}},
       {"--begin", "--end", "--factor", "--type", "--op", "--ranks", "--strategies", "--processes",
        "--transport", "--device", "--report", "--json"}},
      {"ringlet compare",
       {{"ringlet compare old.json new.json", "which rows are slower, with intervals"},
        {"ringlet compare old.json new.json --strict --fail-over 1.05", "code 4 for a script"},
        {"ringlet compare runs/first runs/second --out both.html", "two runs' speed, as a page"}}},
      {"ringlet tune",
       {{"ringlet tune", "a minute or two; auto then knows this machine"},
        {"ringlet tune --ranks 2 --end 1M", "less, and sooner"}}},
      {"ringlet simulate",
       {{"ringlet simulate --ranks 8,64 --alpha 5us --beta 50G", "504K on a modelled network"},
        {"ringlet simulate --machines 512x8 --alpha 5us --beta 50G --slow 17:3x", "one is late"},
        {"ringlet simulate --from bench.json --measured bench.json", "beside what was measured"}}},
      {"ringlet pipeline",
       {{"ringlet pipeline --model resnet18 --stages 4", "where to cut, how fast, what fits"},
        {"ringlet pipeline --stages conv1..layer2,layer3..fc --pipeline gpipe", "cut by hand"},
        {"ringlet pipeline --model resnet50 --stages 4 --balance planned --memory 2G",
         "without a measurement"}},
       {"--model", "--image", "--batch-size", "--stages", "--micro-batches", "--pipeline",
        "--balance", "--replicas", "--threads", "--device", "--memory", "--json"}},
      {"ringlet trace",
       {{"ringlet trace merge trace.json trace.p1.json --out all.json", "all on one clock"}}},
      {"ringlet trace merge",
       {{"ringlet trace merge trace.json trace.p1.json --out all.json", "all on one clock"}}},
      {"ringlet replay",
       {{"ringlet replay trace.json --out page.html", "each call, message by message"},
        {"ringlet replay trace.json --call 'ring 4K' --still ring.svg --steps 1,3", "a picture"},
        {"ringlet replay trace.json --json replay.json", "whose numbers are where, for programs"}}},
      {"ringlet inspect",
       {{"ringlet inspect runs/first", "a run"},
        {"ringlet inspect model.safetensors --json", "a file, for programs"},
        {"ringlet inspect photos --out page.html", "a folder of pictures, before a run"},
        {"ringlet inspect trace.json", "where a traced run's time went"}}},
      {"ringlet devices", {{"ringlet devices --json", "for programs"}}},
      {"ringlet help",
       {{"ringlet help bench train", "as ringlet bench train --help"},
        {"ringlet help --man | man -l -", "the manual page, with every command and flag"}}},
  };
  return pages;
}

}  // namespace

const HelpPage& help_page_of(const std::string& command) {
  static const HelpPage none;
  const auto page = std::find_if(help_pages().begin(), help_pages().end(),
                                 [&](const HelpPage& one) { return one.command == command; });
  return page == help_pages().end() ? none : *page;
}

}  // namespace ringlet::app
