// SPDX-License-Identifier: Apache-2.0
// A folder of images with a PNG of numbered objects, or a folder of PNG masks, for each.
#include <algorithm>
#include <map>
#include <set>

#include "vitrail/base/error.h"
#include "vitrail/base/read_file.h"
#include "vitrail/data/datasets/folder_walk_internal.h"
#include "vitrail/image/decode.h"
#include "vitrail/sam/instance_datasets_internal.h"
#include "vitrail/sam/soft_edges_internal.h"

namespace vitrail::sam {
namespace {

namespace fs = std::filesystem;

struct ImageFiles {
  std::string image;
  std::string numbered = {};               // the PNG of numbered objects; empty: none
  std::vector<std::string> separate = {};  // PNG masks of one object each
};

bool is_png(const std::string& path) { return fs::path(path).extension() == ".png"; }

std::string without_extension(const std::string& path) { return fs::path(path).replace_extension().generic_string(); }

// Reads a PNG mask of the image's size.  Values of 16 bits would be cut off.
image::Image read_mask(const fs::path& path, int64_t width, int64_t height) {
  const std::vector<std::byte> bytes = read_file(path, image::kMaxFileBytes);
  constexpr size_t kBitDepth = 24;  // position in a PNG file
  if (bytes.size() > kBitDepth && bytes[kBitDepth] == std::byte{16}) {
    throw Error(path.string(), "a mask of at most 8 bits per channel (save it as an 8-bit or RGB PNG)", "16 bits");
  }
  image::Image mask = image::decode(bytes, {}, path.string());
  if (mask.width != width || mask.height != height) {
    throw Error(path.string(), str("a mask of the image's size ", width, "×", height),
                str(mask.width, "×", mask.height));
  }
  return mask;
}

uint32_t color_at(const image::Image& mask, int64_t x, int64_t y) {
  const uint8_t* const pixel = mask.row(y) + 3 * x;
  return static_cast<uint32_t>(pixel[0] << 16 | pixel[1] << 8 | pixel[2]);
}

// A mask for each colour but black, in the order of their values.
std::vector<Rle> numbered_masks(const image::Image& mask, const std::string& where) {
  constexpr size_t kMaxObjects = 4096;  // more are a photograph
  std::map<uint32_t, BinaryMask> objects;
  for (int64_t y = 0; y < mask.height; ++y) {
    for (int64_t x = 0; x < mask.width; ++x) {
      const uint32_t color = color_at(mask, x, y);
      if (color == 0) continue;
      BinaryMask& object = objects[color];
      if (object.pixels.empty()) object = make_mask(mask.width, mask.height);
      if (objects.size() > kMaxObjects || objects.size() * mask.pixels.size() > (size_t{4} << 30)) {
        throw Error(where, "numbers of objects", str("more than ", objects.size() - 1, " different colours"));
      }
      object.row(y)[x] = 1;
    }
  }
  require_hard_edges(mask, where);
  std::vector<Rle> masks;
  for (const auto& [color, object] : objects) masks.push_back(encode(object));
  return masks;
}

// A mask in colours may be cut out of a photograph, a grey one with soft edges is larger than the object.
BinaryMask not_black(const image::Image& mask, const std::string& where) {
  bool is_grey = true;
  for (size_t i = 0; i + 2 < mask.pixels.size() && is_grey; i += 3)
    is_grey = mask.pixels[i] == mask.pixels[i + 1] && mask.pixels[i] == mask.pixels[i + 2];
  if (is_grey) require_hard_edges(mask, where);
  BinaryMask object = make_mask(mask.width, mask.height);
  for (int64_t y = 0; y < mask.height; ++y) {
    for (int64_t x = 0; x < mask.width; ++x) object.row(y)[x] = color_at(mask, x, y) != 0;
  }
  return object;
}

class InstanceFolder : public InstanceDataset {
 public:
  explicit InstanceFolder(fs::path folder) : folder_(std::move(folder)) {
    const data::FolderListing listing = data::walk_folder(folder_);
    data::require_all_read(listing);
    std::map<std::string, ImageFiles> images = images_of(listing);  // by path without extension
    for (const std::string& path : listing.images) {
      const std::string stem = without_extension(path), parent = fs::path(path).parent_path().generic_string();
      if (!is_png(path) || (images.contains(stem) && images[stem].image == path)) continue;
      if (images.contains(parent)) {
        images[parent].separate.push_back(path);
      } else if (images.contains(stem)) {
        images[stem].numbered = path;
      } else {
        ++left_out_.images;
      }
    }
    for (auto& [stem, files] : images) {
      if (files.numbered.empty() && files.separate.empty()) {
        ++left_out_.images;
      } else {
        images_.push_back(std::move(files));
      }
    }
  }

  int64_t size() const override { return static_cast<int64_t>(images_.size()); }
  fs::path path(int64_t image) const override { return folder_ / images_.at(static_cast<size_t>(image)).image; }

  std::vector<Rle> masks(int64_t image, int64_t width, int64_t height) const override {
    const ImageFiles& files = images_.at(static_cast<size_t>(image));
    if (files.separate.empty()) {
      const fs::path path = folder_ / files.numbered;
      return numbered_masks(read_mask(path, width, height), path.string());
    }
    std::vector<Rle> masks;
    for (const std::string& name : files.separate) {
      const fs::path path = folder_ / name;
      Rle mask = encode(not_black(read_mask(path, width, height), path.string()));
      if (area(mask) > 0) masks.push_back(std::move(mask));
    }
    return masks;
  }

 private:
  // The files that are images and not masks: all but PNG files, and PNG files with a folder of their name.
  std::map<std::string, ImageFiles> images_of(const data::FolderListing& listing) const {
    const std::set<std::string> folders(listing.folders.begin(), listing.folders.end());
    std::map<std::string, ImageFiles> images;
    for (const std::string& path : listing.images) {
      const std::string stem = without_extension(path);
      if (is_png(path) && !folders.contains(stem)) continue;
      const auto [place, is_new] = images.emplace(stem, ImageFiles{path});
      if (is_new) continue;
      ImageFiles& other = place->second;
      if (is_png(path)) continue;  // the other one has the masks of this folder, or this PNG
      if (!is_png(other.image)) {
        throw Error((folder_ / path).string(), "one image of this name beside its masks",
                    (folder_ / other.image).string() + " too");
      }
      other.image = path;
    }
    return images;
  }

  fs::path folder_;
  std::vector<ImageFiles> images_;
};

}  // namespace

std::unique_ptr<const InstanceDataset> open_instance_folder(const fs::path& folder) {
  return std::make_unique<InstanceFolder>(folder);
}

}  // namespace vitrail::sam
