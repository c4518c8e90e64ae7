// SPDX-License-Identifier: Apache-2.0
// CIFAR-10 and CIFAR-100 with fine labels: the binary version, whose record is a label byte (CIFAR-100: coarse label,
// fine label) and 3,072 bytes of a 32×32 image, and the version for Python.
#include <algorithm>
#include <map>
#include <sstream>

#include "vitrail/base/callbacks.h"
#include "vitrail/base/error.h"
#include "vitrail/base/file_lookup_internal.h"
#include "vitrail/base/mapped_file_internal.h"
#include "vitrail/data/datasets/cifar_files_internal.h"
#include "vitrail/data/datasets/class_matching_internal.h"
#include "vitrail/data/datasets/content_internal.h"
#include "vitrail/data/datasets/dataset_formats_internal.h"
#include "vitrail/image/color_internal.h"

namespace vitrail::data {
namespace fs = std::filesystem;
namespace {

using Names = std::vector<std::string>;

constexpr size_t kMaxNames = 1 << 20;  // bytes of a file of class names

const std::vector<CifarVariant>& variants() {
  static const std::vector<CifarVariant> table = {
      {.names_file = "batches.meta.txt",
       .train = {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin", "data_batch_5.bin"},
       .test = {"test_batch.bin"}},
      {.label_bytes = 2,
       .classes = 100,
       .names_file = "fine_label_names.txt",
       .train = {"train.bin"},
       .test = {"test.bin"}},
      {.is_pickle = true,
       .names_file = "batches.meta",
       .names_key = "label_names",
       .labels_key = "labels",
       .train = {"data_batch_1", "data_batch_2", "data_batch_3", "data_batch_4", "data_batch_5"},
       .test = {"test_batch"}},
      {.is_pickle = true,
       .classes = 100,
       .names_file = "meta",
       .names_key = "fine_label_names",
       .labels_key = "fine_labels",
       .train = {"train"},
       .test = {"test"}}};
  return table;
}

bool contains(const Names& files, const std::string& name) {
  return std::find(files.begin(), files.end(), name) != files.end();
}

// The variant of a single file: by its name, else for a binary one by its size, which is ambiguous only if it is a
// multiple of 3,073 × 3,074 bytes.
const CifarVariant& variant_of(const CifarFile& file) {
  const std::string name = fs::path(file.path).filename();
  for (const CifarVariant& variant : variants()) {
    if (contains(variant.train, name) || contains(variant.test, name)) return variant;
  }
  for (const CifarVariant& variant : variants()) {
    if (!variant.is_pickle && file.bytes.size() % (variant.label_bytes + kCifarPixels) == 0) return variant;
  }
  throw Error(file.path, "complete records of CIFAR-10 (3073 bytes) or CIFAR-100 (3074 bytes)",
              str(file.bytes.size(), " bytes"));
}

Names existing_files(const CifarFiles& files, const Names& names) {
  Names existing;
  std::copy_if(names.begin(), names.end(), std::back_inserter(existing),
               [&](const std::string& name) { return files.has(name); });
  return existing;
}

// The lines of a text.
Names lines_of(std::span<const std::byte> bytes) {
  Names names;
  std::istringstream stream(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  for (std::string line; std::getline(stream, line);) {
    if (line.ends_with('\r')) line.pop_back();
    if (!line.empty()) names.push_back(line);
  }
  return names;
}

// The class names in their file, which need not exist.
Names class_names_of(const CifarFiles& files, const CifarVariant& variant) {
  if (!files.has(variant.names_file)) return {};
  const CifarFile file = files.open(variant.names_file);
  if (file.bytes.size() > kMaxNames)
    throw Error(file.path, str("at most ", kMaxNames, " bytes"), str(file.bytes.size()));
  return variant.is_pickle ? read_pickled_names(file, variant.names_key) : lines_of(file.bytes);
}

class CifarDataset : public Dataset {
 public:
  CifarDataset(const CifarFiles& files, const Names& names, const CifarVariant& variant, const DatasetOptions& options,
               const std::string& split)
      : decode_(options.decode) {
    split_ = split;
    Names own = class_names_of(files, variant);
    if (own.size() != static_cast<size_t>(variant.classes)) own.clear();
    const bool by_name = !own.empty() && !(options.labels.empty() && options.wordnet_ids.empty());
    CifarVariant limited = variant;
    if (!by_name) limited.classes = std::min(variant.classes, class_limit(options));
    for (const std::string& name : names) add(files.open(name), limited);
    if (by_name) match(files.path().string(), own, options);
    class_names_ = options.labels.empty() && !own.empty() ? own : default_class_names(variant.classes, options);
  }

  int64_t size() const override { return static_cast<int64_t>(records_.size()); }
  std::string path(int64_t i) const override { return str(batch(i).path, "#", records_.at(i).index); }
  int64_t label(int64_t i) const override { return batch(i).labels[records_[i].index]; }

  int64_t content_size(int64_t) const override { return kCifarPixels; }
  uint64_t content_hash(int64_t i) const override { return hash_of({pixels(i), kCifarPixels}); }

  image::Image image(int64_t i) const override {
    constexpr size_t kPlane = kCifarSide * kCifarSide;
    const std::byte* planes = pixels(i);
    image::Image rgb{kCifarSide, kCifarSide, 3, std::vector<uint8_t>(kCifarPixels)};
    for (size_t p = 0; p < kPlane; ++p) {
      for (size_t c = 0; c < 3; ++c) rgb.pixels[3 * p + c] = static_cast<uint8_t>(planes[c * kPlane + p]);
    }
    return image::to_mode(std::move(rgb), decode_.mode);
  }

 private:
  struct Record {
    uint32_t batch, index;
  };

  void add(const CifarFile& file, const CifarVariant& variant) {
    CifarBatch read = variant.is_pickle ? read_cifar_pickle(file, variant) : read_cifar_binary(file, variant);
    for (size_t i = 0; i < read.labels.size(); ++i)
      records_.push_back({static_cast<uint32_t>(batches_.size()), static_cast<uint32_t>(i)});
    batches_.push_back(std::move(read));
  }

  // Turns labels into the model's by the names of the classes that occur, as for class folders.
  void match(const std::string& where, const Names& names, const DatasetOptions& options) {
    std::map<int64_t, int64_t> classes;
    for (const CifarBatch& batch : batches_) {
      for (const int64_t label : batch.labels) classes[label] = label;
    }
    Names present;
    for (const auto& [label, same] : classes) present.push_back(names[static_cast<size_t>(label)]);
    const ClassMatch match = match_classes(where, present, options.labels, options.wordnet_ids);
    if (match.rule != ClassMatch::Rule::labels) {
      if (class_limit(options) != std::ssize(names)) {
        throw Error(where, str("class names of the model, or as many classes as its ", class_limit(options)),
                    str(names.size(), ": ", quoted_list(names)));
      }
      warn(where + ": class indices are used, because no class name is a label of the model: " + quoted_list(names));
      return;
    }
    auto index = match.indices.begin();
    for (auto& [label, matched] : classes) matched = *index++;
    for (CifarBatch& batch : batches_) {
      for (int64_t& label : batch.labels) label = classes.at(label);
    }
  }

  const CifarBatch& batch(int64_t i) const { return batches_[records_.at(i).batch]; }
  const std::byte* pixels(int64_t i) const { return batch(i).pixels + records_[i].index * batch(i).stride; }

  image::DecodeOptions decode_;
  std::vector<CifarBatch> batches_;
  std::vector<Record> records_;
};

// The files of a folder on disk.
class FolderFiles : public CifarFiles {
 public:
  explicit FolderFiles(fs::path folder) : folder_(std::move(folder)) {}
  bool has(const std::string& name) const override {
    std::error_code ignored;
    return fs::is_regular_file(folder_ / name, ignored);
  }
  CifarFile open(const std::string& name) const override {
    auto file = std::make_shared<MappedFile>(folder_ / name);
    return {(folder_ / name).string(), file->bytes(), file};
  }
  fs::path path() const override { return folder_; }

 private:
  fs::path folder_;
};

// "train" and "test" may be anything: such a file must be a pickle.
bool has_files(const CifarFiles& files, const CifarVariant& variant, const Names& names) {
  const Names existing = existing_files(files, names);
  return !existing.empty() && (!variant.is_pickle || is_pickle(files.open(existing.front()).bytes));
}

}  // namespace

bool are_cifar_files(const CifarFiles& files) {
  return std::any_of(variants().begin(), variants().end(), [&](const CifarVariant& variant) {
    return has_files(files, variant, variant.train) || has_files(files, variant, variant.test);
  });
}

// The first variant that has files counts.
std::vector<std::string> cifar_splits(const CifarFiles& files) {
  std::vector<std::string> splits;
  for (const CifarVariant& variant : variants()) {
    if (!splits.empty()) break;
    if (has_files(files, variant, variant.test)) splits.push_back("test");
    if (has_files(files, variant, variant.train)) splits.push_back("train");
  }
  return splits;
}

std::unique_ptr<Dataset> open_cifar(const CifarFiles& files, const DatasetOptions& options) {
  const std::string split = choose_standard_split(files.path(), options, cifar_splits(files));
  for (const CifarVariant& variant : variants()) {
    const Names& names = split == "train" ? variant.train : variant.test;
    if (has_files(files, variant, names))
      return std::make_unique<CifarDataset>(files, existing_files(files, names), variant, options, split);
  }
  throw Error(files.path().string(), "files of CIFAR", "none");
}

bool is_cifar_folder(const fs::path& folder) { return are_cifar_files(FolderFiles(folder)); }

std::vector<std::string> cifar_splits(const fs::path& folder) { return cifar_splits(FolderFiles(folder)); }

bool is_cifar_pickle(const fs::path& file) {
  const std::string name = file.filename();
  return std::any_of(variants().begin(), variants().end(), [&](const CifarVariant& variant) {
    return variant.is_pickle && (contains(variant.train, name) || contains(variant.test, name));
  });
}

std::unique_ptr<Dataset> open_cifar(const fs::path& path, const DatasetOptions& options) {
  if (is_folder(path)) return open_cifar(FolderFiles(path), options);
  require_no_split(path, options);
  const FolderFiles files(path.parent_path());
  const std::string name = path.filename();
  return std::make_unique<CifarDataset>(files, Names{name}, variant_of(files.open(name)), options, "");
}

}  // namespace vitrail::data
