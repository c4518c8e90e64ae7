// SPDX-License-Identifier: Apache-2.0
// The binary versions of CIFAR-10 and CIFAR-100 (Krizhevsky 2009, https://www.cs.toronto.edu/~kriz/cifar.html).  A
// record is a label byte (CIFAR-100: coarse label, fine label) and 3,072 bytes of a 32×32 image in planar RGB order.
#include <algorithm>
#include <sstream>

#include "vitrail/base/error.h"
#include "vitrail/base/mapped_file_internal.h"
#include "vitrail/base/read_file.h"
#include "vitrail/data/content_internal.h"
#include "vitrail/data/dataset_formats_internal.h"
#include "vitrail/image/color_internal.h"

namespace vitrail::data {
namespace fs = std::filesystem;
namespace {

constexpr int64_t kSide = 32;
constexpr size_t kPlane = kSide * kSide;
constexpr size_t kPixels = 3 * kPlane;

struct Variant {
  size_t label_bytes;  // before the pixels; the last one is the label
  int64_t classes;
  const char* names_file;
  std::vector<std::string> train, test;  // files of each split
  size_t record() const { return label_bytes + kPixels; }
};

const std::vector<Variant>& variants() {
  static const std::vector<Variant> table = {
      {1,
       10,
       "batches.meta.txt",
       {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin", "data_batch_5.bin"},
       {"test_batch.bin"}},
      {2, 100, "fine_label_names.txt", {"train.bin"}, {"test.bin"}}};
  return table;
}

bool contains(const std::vector<std::string>& files, const std::string& name) {
  return std::find(files.begin(), files.end(), name) != files.end();
}

// The variant of a file: by its name, else by its size.  The size is ambiguous only if it is a multiple of
// 3,073 × 3,074 bytes.
const Variant& variant_of(const fs::path& file, size_t size) {
  for (const Variant& variant : variants()) {
    if (contains(variant.train, file.filename()) || contains(variant.test, file.filename())) return variant;
  }
  for (const Variant& variant : variants()) {
    if (size % variant.record() == 0) return variant;
  }
  throw Error(file.string(), "complete records of CIFAR-10 (3073 bytes) or CIFAR-100 (3074 bytes)",
              str(size, " bytes"));
}

// The files of a split that exist.
std::vector<fs::path> existing_files(const fs::path& folder, const std::vector<std::string>& names) {
  std::vector<fs::path> files;
  for (const std::string& name : names) {
    if (is_present(folder / name)) files.push_back(folder / name);
  }
  return files;
}

// The lines of a file that need not exist.
std::vector<std::string> read_names(const fs::path& file) {
  if (!is_present(file)) return {};
  std::vector<std::string> names;
  std::istringstream stream(read_text_file(file));
  for (std::string line; std::getline(stream, line);) {
    if (line.ends_with('\r')) line.pop_back();
    if (!line.empty()) names.push_back(line);
  }
  return names;
}

class CifarDataset : public Dataset {
 public:
  CifarDataset(const std::vector<fs::path>& files, const DatasetOptions& options, const std::string& split)
      : decode_(options.decode) {
    split_ = split;
    for (const fs::path& path : files) add(path, options);
    class_names_ = options.labels;
    if (class_names_.empty()) class_names_ = read_names(files.front().parent_path() / variant_->names_file);
    if (class_names_.size() != static_cast<size_t>(variant_->classes) && options.labels.empty()) {
      class_names_ = default_class_names(variant_->classes, options);
    }
  }

  int64_t size() const override { return static_cast<int64_t>(records_.size()); }
  std::string path(int64_t i) const override {
    const Record& record = records_.at(i);
    return str(files_[record.file]->path().string(), "#", record.index);
  }
  int64_t label(int64_t i) const override { return static_cast<int64_t>(bytes(i)[variant_->label_bytes - 1]); }

  int64_t content_size(int64_t) const override { return kPixels; }
  uint64_t content_hash(int64_t i) const override { return hash_of({bytes(i) + variant_->label_bytes, kPixels}); }

  image::Image image(int64_t i) const override {
    const std::byte* planes = bytes(i) + variant_->label_bytes;
    image::Image rgb{kSide, kSide, 3, std::vector<uint8_t>(kPixels)};
    for (size_t p = 0; p < kPlane; ++p) {
      for (size_t c = 0; c < 3; ++c) rgb.pixels[3 * p + c] = static_cast<uint8_t>(planes[c * kPlane + p]);
    }
    return image::to_mode(std::move(rgb), decode_.mode);
  }

 private:
  struct Record {
    uint32_t file, index;
  };

  void add(const fs::path& path, const DatasetOptions& options) {
    auto file = std::make_unique<MappedFile>(path);
    const size_t size = file->bytes().size();
    variant_ = &variant_of(path, size);
    if (size == 0 || size % variant_->record() != 0) {
      throw Error(path.string(), str("one or more records of ", variant_->record(), " bytes"), str(size, " bytes"));
    }
    const int64_t limit = std::min(variant_->classes, class_limit(options));
    for (size_t r = 0; r < size / variant_->record(); ++r) {
      records_.push_back({static_cast<uint32_t>(files_.size()), static_cast<uint32_t>(r)});
      const auto label = static_cast<int64_t>(file->bytes()[r * variant_->record() + variant_->label_bytes - 1]);
      if (label >= limit) throw Error(str(path.string(), "#", r), str("a label below ", limit), str(label));
    }
    files_.push_back(std::move(file));
  }

  const std::byte* bytes(int64_t i) const {
    const Record& record = records_.at(i);
    return files_[record.file]->bytes().data() + record.index * variant_->record();
  }

  image::DecodeOptions decode_;
  const Variant* variant_ = nullptr;
  std::vector<std::unique_ptr<MappedFile>> files_;
  std::vector<Record> records_;
};

}  // namespace

bool is_cifar_folder(const fs::path& folder) {
  return std::any_of(variants().begin(), variants().end(), [&](const Variant& variant) {
    return !existing_files(folder, variant.train).empty() || !existing_files(folder, variant.test).empty();
  });
}

// The first variant that has files counts.
std::vector<std::string> cifar_splits(const fs::path& folder) {
  std::vector<std::string> splits;
  for (const Variant& variant : variants()) {
    if (!splits.empty()) break;
    if (!existing_files(folder, variant.test).empty()) splits.push_back("test");
    if (!existing_files(folder, variant.train).empty()) splits.push_back("train");
  }
  return splits;
}

std::unique_ptr<Dataset> open_cifar(const fs::path& path, const DatasetOptions& options) {
  if (!is_folder(path)) {
    require_no_split(path, options);
    return std::make_unique<CifarDataset>(std::vector<fs::path>{path}, options, "");
  }
  const std::string split = choose_standard_split(path, options, cifar_splits(path));
  std::vector<fs::path> files;
  for (const Variant& variant : variants()) {
    if (files.empty()) files = existing_files(path, split == "train" ? variant.train : variant.test);
  }
  return std::make_unique<CifarDataset>(files, options, split);
}

}  // namespace vitrail::data
