// SPDX-License-Identifier: Apache-2.0
#pragma once
// One file of CIFAR-10 or CIFAR-100 (Krizhevsky 2009, https://www.cs.toronto.edu/~kriz/cifar.html).
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace vitrail::data {

constexpr int64_t kCifarSide = 32;
constexpr size_t kCifarPixels = 3 * kCifarSide * kCifarSide;  // planar RGB

// The bytes of a file, on disk or in an archive, and what keeps them alive.
struct CifarFile {
  std::string path;
  std::span<const std::byte> bytes;
  std::shared_ptr<const void> owner{};
};

// The files of a folder on disk, or of one in an archive.
class CifarFiles {
 public:
  virtual ~CifarFiles() = default;
  virtual bool has(const std::string& name) const = 0;  // a regular file
  virtual CifarFile open(const std::string& name) const = 0;
  virtual std::string path() const = 0;  // the folder, for messages
};

// A version of the data: its files and labels.
struct CifarVariant {
  bool is_pickle = false;
  size_t label_bytes = 1;  // before the pixels of a binary record; the last one is the label
  int64_t classes = 10;
  const char *names_file = "", *names_key = "";  // file of the class names; the key in a pickle
  const char* labels_key = "";                   // in a pickle
  std::vector<std::string> train{}, test{};      // files of each split
};

struct CifarBatch {
  std::string path;
  const std::byte* pixels = nullptr;  // those of the first image
  size_t stride = 0;                  // bytes from image to image
  std::vector<int64_t> labels{};      // one for each image
  std::shared_ptr<const void> owner{};
};

// Throws Error naming the file if it is damaged or empty, or has a label outside the variant's classes.
CifarBatch read_cifar_binary(const CifarFile& file, const CifarVariant& variant);

// A batch of the version for Python: a pickled dict with "data", a uint8 array [n, 3072], and a list or array of
// labels.  Keys are strings or bytes.  Nothing in the pickle is imported or called (weights/pytorch/pickle_internal.h).
CifarBatch read_cifar_pickle(const CifarFile& file, const CifarVariant& variant);

// The list of strings with this key of a pickled dict; empty if there is none.
std::vector<std::string> read_pickled_names(const CifarFile& file, const std::string& key);

// Whether a file begins as a pickle of protocol 2 or above.
bool is_pickle(std::span<const std::byte> bytes);

}  // namespace vitrail::data
