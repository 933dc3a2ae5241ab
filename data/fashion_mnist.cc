#include "data/fashion_mnist.h"

#include <array>
#include <cstdlib>

#include "base/data_error.h"
#include "base/sha256.h"
#include "data/idx_dataset.h"

namespace ringlet::data {
namespace {

namespace fs = std::filesystem;

constexpr const char* kRemedy =
    "install Debian's package dataset-fashion-mnist, name a directory with --data-dir, or take "
    "--data synthetic, which needs no files";

struct KnownFile {
  const char* stem;    ///< how the file's name starts
  const char* sha256;  ///< of the raw bytes
};

constexpr std::array kKnownFiles{
    KnownFile{"train-images", "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888"},
    KnownFile{"train-labels", "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9"},
    KnownFile{"t10k-images", "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b"},
    KnownFile{"t10k-labels", "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34"},
};

const char* known_sum(const fs::path& file) {
  for (const KnownFile& known : kKnownFiles) {
    if (file.filename().string().starts_with(known.stem)) return known.sha256;
  }
  return "";
}

/// Hashes while it inflates, when the bytes are in the cache anyway.
IdxArray read_checked(const fs::path& file, int dimensions) {
  Sha256 hash;
  IdxArray array =
      read_idx(file, dimensions, [&](std::span<const std::uint8_t> bytes) { hash.update(bytes); });
  const std::string found = hash.finish();
  if (found != known_sum(file)) {
    throw DataError(file.string() + ": not Fashion-MNIST's file: expected sha256 " +
                    known_sum(file) + " of the raw bytes, found " + found +
                    "; fetch it again, or use --data DIRECTORY for a data set of your own");
  }
  return array;
}

fs::path require_files(const fs::path& directory, const std::string& named_by) {
  for (const char* folder : {"", "raw", "FashionMNIST/raw"}) {  // torchvision's
    const fs::path candidate = *folder == '\0' ? directory : directory / folder;
    if (has_idx_files(candidate)) return candidate;
  }
  try {
    find_idx_files(directory);
  } catch (const DataError& error) {
    throw DataError(std::string(error.what()) + " (named by " + named_by + "), or " + kRemedy);
  }
  return directory;
}

const char* environment(const char* name) {
  return std::getenv(name);  // NOLINT(concurrency-mt-unsafe): never written
}

}  // namespace

const std::vector<std::string>& fashion_mnist_classes() {
  static const std::vector<std::string> names{"T-shirt/top", "Trouser",   "Pullover", "Dress",
                                              "Coat",        "Sandal",    "Shirt",    "Sneaker",
                                              "Bag",         "Ankle boot"};
  return names;
}

std::vector<fs::path> fashion_mnist_directories() {
  std::vector<fs::path> directories;
  for (const char* prefix : {"/usr/local", "/usr"}) {
    directories.push_back(fs::path(prefix) / "share/datasets/fashion-mnist");
  }
  if (const char* home = environment("HOME")) {
    directories.push_back(fs::path(home) / ".cache/ringlet/fashion-mnist");
  }
  return directories;
}

fs::path find_fashion_mnist(const fs::path& directory, const std::vector<fs::path>& directories) {
  if (!directory.empty()) return require_files(directory, "--data-dir");
  const char* variable = environment("RINGLET_DATA");
  if (variable != nullptr && *variable != '\0') return require_files(variable, "RINGLET_DATA");

  std::string looked;
  for (const fs::path& candidate : directories) {
    if (has_idx_files(candidate)) return candidate;
    looked += (looked.empty() ? "" : ", ") + candidate.string();
  }
  throw DataError(
      "Fashion-MNIST was not found (looked for train-images-idx3-ubyte[.gz] and its "
      "three companions in " +
      looked + "): " + kRemedy);
}

Splits load_fashion_mnist(const fs::path& directory) {
  return load_idx_files(find_idx_files(find_fashion_mnist(directory)), kFashionMnistName,
                        fashion_mnist_classes(), read_checked);
}

}  // namespace ringlet::data
