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
#include "vitrail/data/datasets/manifest_internal.h"
#include "vitrail/data/datasets/splits_internal.h"
#include "vitrail/image/color_internal.h"

namespace vitrail::data {
namespace fs = std::filesystem;
namespace {

using Names = std::vector<std::string>;

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

// The images and labels of one images file.
class IdxImages : public ImageSource {
 public:
  explicit IdxImages(const fs::path& images_path)
      : where_(images_path.string()),
        images_file_(images_path),
        images_(parse(where_, images_file_.bytes(), 3)),
        labels_where_(labels_path_of(images_path).string()),
        labels_file_(labels_where_),
        labels_(parse(labels_where_, labels_file_.bytes(), 1)) {
    if (labels_.shape[0] != images_.shape[0])
      throw Error(labels_where_, str(images_.shape[0], " labels, one per image"), str(labels_.shape[0]));
  }

  // All of them.  Labels are below `limit`.
  std::vector<Row> rows(int64_t limit) const {
    std::vector<Row> rows;
    for (const std::byte value : labels_.elements) {
      const auto label = static_cast<int64_t>(value);
      if (label >= limit) throw Error(str(labels_where_, "#", rows.size()), str("a label below ", limit), str(label));
      rows.push_back({.entry = std::ssize(rows), .labels = {label}});
    }
    return rows;
  }

  std::string path(const Row& row) const override { return str(where_, "#", row.entry); }
  int64_t content_size(const Row&) const override { return images_.shape[1] * images_.shape[2]; }
  uint64_t content_hash(const Row& row) const override { return hash_of(pixels(row)); }
  image::Image image(const Row& row, const image::DecodeOptions& options) const override {
    const auto* first = reinterpret_cast<const uint8_t*>(pixels(row).data());
    image::Image grey{images_.shape[2], images_.shape[1], 1, {first, first + content_size(row)}};
    return image::to_mode(std::move(grey), options.mode);
  }

 private:
  std::span<const std::byte> pixels(const Row& row) const {
    const auto size = static_cast<size_t>(content_size(row));
    return images_.elements.subspan(static_cast<size_t>(row.entry) * size, size);
  }

  std::string where_;
  Contents images_file_;
  IdxArray images_;
  std::string labels_where_;
  Contents labels_file_;
  IdxArray labels_;
};

std::string split_of(const fs::path& file) {
  const std::string name = file.filename().string();
  if (name.find("t10k") != name.npos || name.find("test") != name.npos) return "test";
  return name.find("train") != name.npos ? "train" : "";
}

class IdxManifest : public Manifest {
 public:
  IdxManifest(std::string where, std::vector<fs::path> files) : where_(std::move(where)), files_(std::move(files)) {}

  std::vector<std::string> splits() const override {
    std::set<std::string> splits;
    for (const fs::path& file : files_) splits.insert(split_of(file));
    splits.erase("");
    return {splits.begin(), splits.end()};
  }

 private:
  Rows rows(const DatasetOptions& options) const override {
    const bool is_file = files_.size() == 1 && files_.front() == where_;
    const std::string split = choose_split({.where = where_, .existing = is_file ? Names() : splits()}, options);
    std::vector<fs::path> matches;
    for (const fs::path& file : files_) {
      if (is_file || split_of(file) == split) matches.push_back(file);
    }
    if (matches.size() != 1) {
      const auto described = [](const fs::path& file) {
        return file.filename().string() + " (" + split_of(file) + ")";
      };
      throw Error(where_, "one images file of the split " + split, join(files_, ", ", described));
    }
    const auto images = images_.get(matches.front());
    Rows rows{.where = where_, .split = split, .items = images->rows(class_limit(options)), .images = images};
    int64_t classes = 0;
    for (const Row& row : rows.items) classes = std::max(classes, row.labels.front() + 1);
    rows.class_names = default_class_names(classes, options);
    return rows;
  }

  std::string where_;
  std::vector<fs::path> files_;  // images files
  ReadOnce<IdxImages> images_;
};

}  // namespace

bool is_idx_images(const fs::path& file) {
  const std::string name = file.filename().string();
  const size_t images = name.find("images"), idx3 = name.find("idx3");
  return images != name.npos && idx3 != name.npos && images < idx3;
}

ManifestPtr read_idx_file(const fs::path& images) {
  return std::make_shared<IdxManifest>(images.string(), std::vector<fs::path>{images});
}

// A file without .gz hides the one of the same name with it.
ManifestPtr read_idx_folder(const fs::path& folder, const FolderListing& listing) {
  std::vector<fs::path> files;
  for (const std::string& name : listing.others) {
    std::error_code dangling;
    const bool is_top = name.find('/') == name.npos;
    if (is_top && is_idx_images(name) && !fs::is_other(folder / name, dangling)) files.push_back(folder / name);
  }
  std::erase_if(files, [&](const fs::path& file) {
    return file.extension() == ".gz" && is_present(fs::path(file).replace_extension());
  });
  return files.empty() ? nullptr : std::make_shared<const IdxManifest>(folder.string(), std::move(files));
}

}  // namespace vitrail::data
