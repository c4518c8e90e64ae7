// SPDX-License-Identifier: Apache-2.0
// MNIST's IDX files (LeCun, Cortes, Burges: http://yann.lecun.com/exdb/mnist): the magic bytes 00 00 TYPE AXES, the
// extents as 32-bit big-endian integers, the elements.  Images are unsigned bytes [n, height, width], labels [n].
#include <algorithm>
#include <set>

#include "vitrail/base/error.h"
#include "vitrail/base/file_lookup_internal.h"
#include "vitrail/base/gzip_internal.h"
#include "vitrail/base/mapped_file_internal.h"
#include "vitrail/base/text.h"
#include "vitrail/data/datasets/content_internal.h"
#include "vitrail/data/datasets/dataset_formats_internal.h"
#include "vitrail/image/color_internal.h"

namespace vitrail::data {
namespace fs = std::filesystem;
namespace {

// Limit of a decompressed file: above the largest published one (EMNIST, 0.5 GiB).
constexpr uint64_t kMaxDecompressed = uint64_t{2} << 30;

// A file's bytes, decompressed if it is gzip.
class Contents {
 public:
  explicit Contents(const fs::path& path) : file_(std::make_unique<MappedFile>(path)), bytes_(file_->bytes()) {
    if (!is_gzip(bytes_)) return;  // IDX begins with zeros, gzip does not
    decompressed_ = gunzip(bytes_, kMaxDecompressed, path.string());
    bytes_ = decompressed_;
    file_.reset();
  }
  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::unique_ptr<MappedFile> file_;
  std::vector<std::byte> decompressed_;
  std::span<const std::byte> bytes_;
};

// An array of unsigned bytes; the elements are a view of the file's bytes.
struct IdxArray {
  std::vector<int64_t> shape;
  std::span<const std::byte> elements;
};

IdxArray parse(const std::string& where, std::span<const std::byte> bytes, size_t axes) {
  const auto big_endian_32 = [&](size_t offset) {
    int64_t value = 0;
    for (size_t i = 0; i < 4; ++i) value = value << 8 | static_cast<int64_t>(bytes[offset + i]);
    return value;
  };
  const size_t header = 4 + 4 * axes;
  if (bytes.size() < header)
    throw Error(where, str("an IDX header of ", header, " bytes"), str(bytes.size(), " bytes"));
  const int64_t magic = 0x800 + static_cast<int64_t>(axes);  // 08: unsigned bytes
  if (big_endian_32(0) != magic) {
    throw Error(where, str("IDX magic ", magic, " (bytes, ", axes, " axes)"), str(big_endian_32(0)));
  }
  IdxArray array{{}, bytes.subspan(header)};
  int64_t count = 1;
  for (size_t axis = 0; axis < axes; ++axis) {
    array.shape.push_back(big_endian_32(4 + 4 * axis));
    if (__builtin_mul_overflow(count, array.shape.back(), &count))
      throw Error(where, "extents with a product below 2^63", "larger ones");
  }
  if (count == 0) throw Error(where, "at least one element", "none");
  if (static_cast<size_t>(count) != array.elements.size()) {
    throw Error(where, str(count, " bytes after the header"), str(array.elements.size()));
  }
  return array;
}

// The labels file of an images file: "labels" instead of "images" and "idx1" instead of "idx3" in its name, with or
// without .gz.
fs::path labels_path_of(const fs::path& images) {
  std::string name = images.filename().string();
  name.replace(name.rfind("images"), 6, "labels");
  name.replace(name.rfind("idx3"), 4, "idx1");
  const fs::path same = images.parent_path() / name;
  if (is_present(same)) return same;
  const fs::path other = same.extension() == ".gz" ? fs::path(same).replace_extension() : fs::path(same) += ".gz";
  return is_present(other) ? other : same;
}

class IdxDataset : public Dataset {
 public:
  IdxDataset(const fs::path& images_path, const DatasetOptions& options, const std::string& split)
      : where_(images_path.string()), decode_(options.decode), images_file_(images_path) {
    split_ = split;
    images_ = parse(where_, images_file_.bytes(), 3);
    const fs::path labels_path = labels_path_of(images_path);
    const Contents labels_file(labels_path);
    const IdxArray labels = parse(labels_path.string(), labels_file.bytes(), 1);
    if (labels.shape[0] != images_.shape[0]) {
      throw Error(labels_path.string(), str(images_.shape[0], " labels, one per image"), str(labels.shape[0]));
    }
    int64_t max_label = 0;
    for (const std::byte value : labels.elements) {
      const auto label = static_cast<int64_t>(value);
      if (label >= class_limit(options)) {
        throw Error(str(labels_path.string(), "#", labels_.size()), str("a label below ", class_limit(options)),
                    str(label));
      }
      max_label = std::max(max_label, label);
      labels_.push_back(static_cast<uint8_t>(value));
    }
    class_names_ = default_class_names(max_label + 1, options);
  }

  int64_t size() const override { return static_cast<int64_t>(labels_.size()); }
  std::string path(int64_t i) const override { return str(where_, "#", i); }
  int64_t label(int64_t i) const override { return labels_.at(i); }

  int64_t content_size(int64_t) const override { return images_.shape[1] * images_.shape[2]; }
  uint64_t content_hash(int64_t i) const override {
    const int64_t size = content_size(i);
    return hash_of({images_.elements.data() + i * size, static_cast<size_t>(size)});
  }

  image::Image image(int64_t i) const override {
    const int64_t height = images_.shape[1], width = images_.shape[2];
    const auto* first = reinterpret_cast<const uint8_t*>(images_.elements.data()) + i * height * width;
    image::Image grey{width, height, 1, {first, first + height * width}};
    return image::to_mode(std::move(grey), decode_.mode);
  }

 private:
  std::string where_;
  image::DecodeOptions decode_;
  Contents images_file_;
  IdxArray images_;
  std::vector<uint8_t> labels_;
};

std::string split_of(const fs::path& file) {
  const std::string name = file.filename().string();
  if (name.find("t10k") != name.npos || name.find("test") != name.npos) return "test";
  return name.find("train") != name.npos ? "train" : "";
}

// The images files of a folder, sorted.  If a file exists with and without .gz, only the latter is listed.
std::vector<fs::path> images_files(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code error, dangling;
  fs::directory_iterator entries(folder, error);
  for (; !error && entries != fs::directory_iterator(); entries.increment(error)) {
    if (is_idx_images(entries->path()) && !entries->is_other(dangling)) files.push_back(entries->path());
  }
  if (error) throw Error(str(folder.string(), ": cannot be read: ", error.message()));
  std::sort(files.begin(), files.end());
  std::erase_if(files, [&](const fs::path& file) {
    return file.extension() == ".gz" && is_present(fs::path(file).replace_extension());
  });
  return files;
}

}  // namespace

bool is_idx_images(const fs::path& file) {
  const std::string name = file.filename().string();
  const size_t images = name.find("images"), idx3 = name.find("idx3");
  return images != name.npos && idx3 != name.npos && images < idx3;
}

bool is_idx_folder(const fs::path& folder) { return !images_files(folder).empty(); }

std::vector<std::string> idx_splits(const fs::path& folder) {
  std::set<std::string> splits;
  for (const fs::path& file : images_files(folder)) splits.insert(split_of(file));
  splits.erase("");
  return {splits.begin(), splits.end()};
}

std::unique_ptr<Dataset> open_idx(const fs::path& path, const DatasetOptions& options) {
  if (!is_folder(path)) {
    require_no_split(path, options);
    return std::make_unique<IdxDataset>(path, options, "");
  }
  const std::vector<std::string> existing = idx_splits(path);
  const std::string split = existing.empty() ? "test" : choose_standard_split(path, options, existing);
  std::vector<fs::path> matches;
  const std::vector<fs::path> files = images_files(path);
  for (const fs::path& file : files) {
    if (split_of(file) == split) matches.push_back(file);
  }
  if (matches.size() != 1) {
    const auto described = [](const fs::path& file) { return file.filename().string() + " (" + split_of(file) + ")"; };
    throw Error(path.string(), "one images file of the split " + split, join(files, ", ", described));
  }
  return std::make_unique<IdxDataset>(matches.front(), options, split);
}

}  // namespace vitrail::data
