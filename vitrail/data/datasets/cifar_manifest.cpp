// SPDX-License-Identifier: Apache-2.0
// CIFAR-10 and CIFAR-100 with fine labels: the binary version, whose record is a label byte (CIFAR-100: coarse label,
// fine label) and 3,072 bytes of a 32×32 image, and the version for Python.
#include <algorithm>
#include <map>
#include <sstream>

#include "vitrail/base/callbacks.h"
#include "vitrail/base/error.h"
#include "vitrail/data/datasets/cifar_batch_internal.h"
#include "vitrail/data/datasets/class_matching_internal.h"
#include "vitrail/data/datasets/content_internal.h"
#include "vitrail/data/datasets/manifest_internal.h"
#include "vitrail/data/datasets/splits_internal.h"
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

// Batches one after the other.
class CifarImages : public ImageSource {
 public:
  void add(CifarBatch batch) {
    for (size_t i = 0; i < batch.labels.size(); ++i)
      records_.push_back({static_cast<uint32_t>(batches_.size()), static_cast<uint32_t>(i)});
    batches_.push_back(std::move(batch));
  }

  std::vector<Row> rows() const {
    std::vector<Row> rows;
    for (const CifarBatch& batch : batches_) {
      for (const int64_t label : batch.labels) rows.push_back({.entry = std::ssize(rows), .labels = {label}});
    }
    return rows;
  }

  std::string path(const Row& row) const override { return str(batch(row).path, "#", record(row).index); }
  int64_t content_size(const Row&) const override { return kCifarPixels; }
  uint64_t content_hash(const Row& row) const override { return hash_of({pixels(row), kCifarPixels}); }
  image::Image image(const Row& row, const image::DecodeOptions& options) const override {
    constexpr size_t kPlane = kCifarSide * kCifarSide;
    const std::byte* planes = pixels(row);
    image::Image rgb{kCifarSide, kCifarSide, 3, std::vector<uint8_t>(kCifarPixels)};
    for (size_t p = 0; p < kPlane; ++p) {
      for (size_t c = 0; c < 3; ++c) rgb.pixels[3 * p + c] = static_cast<uint8_t>(planes[c * kPlane + p]);
    }
    return image::to_mode(std::move(rgb), options.mode);
  }

 private:
  struct Record {
    uint32_t batch, index;
  };
  const Record& record(const Row& row) const { return records_.at(static_cast<size_t>(row.entry)); }
  const CifarBatch& batch(const Row& row) const { return batches_[record(row).batch]; }
  const std::byte* pixels(const Row& row) const { return batch(row).pixels + record(row).index * batch(row).stride; }

  std::vector<CifarBatch> batches_;
  std::vector<Record> records_;
};

// Turns labels into the model's by the names of the classes that occur, as for class folders.
void match(std::vector<Row>& rows, const std::string& where, const Names& names, const DatasetOptions& options) {
  std::map<int64_t, int64_t> classes;
  for (const Row& row : rows) classes[row.labels.front()] = row.labels.front();
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
  for (Row& row : rows) row.labels.front() = classes.at(row.labels.front());
}

Rows read_rows(const CifarFiles& files, const std::string& where, const Names& names, const CifarVariant& variant,
               const DatasetOptions& options) {
  Names own = class_names_of(files, variant);
  if (own.size() != static_cast<size_t>(variant.classes)) own.clear();
  const bool by_name = !own.empty() && !(options.labels.empty() && options.wordnet_ids.empty());
  CifarVariant limited = variant;
  if (!by_name) limited.classes = std::min(variant.classes, class_limit(options));
  const auto images = std::make_shared<CifarImages>();
  for (const std::string& name : names) {
    const CifarFile file = files.open(name);
    images->add(variant.is_pickle ? read_cifar_pickle(file, limited) : read_cifar_binary(file, limited));
  }
  Rows rows{.where = where, .items = images->rows(), .images = images};
  if (by_name) match(rows.items, where, own, options);
  rows.class_names =
      options.labels.empty() && !own.empty() ? std::move(own) : default_class_names(variant.classes, options);
  return rows;
}

// "train" and "test" may be anything: such a file must be a pickle.
bool has_files(const CifarFiles& files, const CifarVariant& variant, const Names& names) {
  const Names existing = existing_files(files, names);
  return !existing.empty() && (!variant.is_pickle || is_pickle(files.open(existing.front()).bytes));
}

// A folder of files.  Of several variants, the first one that has files counts.
class CifarManifest : public Manifest {
 public:
  explicit CifarManifest(CifarFilesPtr files) : files_(std::move(files)) {}

  Names splits() const override {
    Names splits;
    for (const CifarVariant& variant : variants()) {
      if (!splits.empty()) break;
      if (has_files(*files_, variant, variant.test)) splits.push_back("test");
      if (has_files(*files_, variant, variant.train)) splits.push_back("train");
    }
    return splits;
  }

 private:
  Rows rows(const DatasetOptions& options) const override {
    const std::string split = choose_split({.where = files_->path(), .existing = splits()}, options);
    for (const CifarVariant& variant : variants()) {
      const Names& names = split == "train" ? variant.train : variant.test;
      if (!has_files(*files_, variant, names)) continue;
      Rows rows = read_rows(*files_, files_->path(), existing_files(*files_, names), variant, options);
      rows.split = split;
      return rows;
    }
    throw Error(files_->path(), "files of CIFAR", "none");
  }

  CifarFilesPtr files_;
};

class CifarFileManifest : public Manifest {
 public:
  explicit CifarFileManifest(const fs::path& file) : file_(file), files_(files_of(file.parent_path())) {}
  Names splits() const override { return {}; }

 private:
  Rows rows(const DatasetOptions& options) const override {
    choose_split({.where = file_.string()}, options);
    const std::string name = file_.filename();
    return read_rows(*files_, files_->path(), {name}, variant_of(files_->open(name)), options);
  }

  fs::path file_;
  CifarFilesPtr files_;
};

}  // namespace

bool has_cifar(const CifarFiles& files) {
  return std::ranges::any_of(variants(), [&](const CifarVariant& variant) {
    return has_files(files, variant, variant.train) || has_files(files, variant, variant.test);
  });
}

bool is_cifar_pickle(const fs::path& file) {
  const std::string name = file.filename();
  return std::ranges::any_of(variants(), [&](const CifarVariant& variant) {
    return variant.is_pickle && (contains(variant.train, name) || contains(variant.test, name));
  });
}

ManifestPtr read_cifar(CifarFilesPtr files) { return std::make_shared<CifarManifest>(std::move(files)); }

ManifestPtr read_cifar_file(const fs::path& file) { return std::make_shared<CifarFileManifest>(file); }

}  // namespace vitrail::data
