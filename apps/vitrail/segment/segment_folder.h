// SPDX-License-Identifier: Apache-2.0
#pragma once
// The folder that `vitrail segment` writes.
#include <filesystem>
#include <optional>
#include <span>
#include <string>

#include "apps/vitrail/output/output_checks.h"
#include "apps/vitrail/output/output_folder.h"
#include "apps/vitrail/segment/segment_image.h"
#include "apps/vitrail/segment/segment_options.h"
#include "vitrail/base/atomic_file.h"
#include "vitrail/sam/segment_masks_internal.h"

namespace vitrail::app {

using sam::Json;
using sam::SegmentMask;

// coco.json, written as images arrive: its annotations first, then the list of its images.
class CocoFile {
 public:
  explicit CocoFile(const std::filesystem::path& file);
  void add(const std::string& path, int64_t width, int64_t height, std::span<const SegmentMask> masks);
  void finish();

 private:
  AtomicFile file_;
  Json images_ = Json::array();
  int64_t annotations_ = 0;
};

class SegmentFolder {
 public:
  // Creates the folder.  Throws Error if that fails.
  explicit SegmentFolder(const SegmentOptions& options);

  bool needs_pixels() const { return files_.overlay; }
  // An image that no output may replace.
  void protect(const std::string& image) { images_read_.add(image); }
  // The files of an image.  Throws Error if one cannot be written, and as check_output() does.
  void add(SegmentImage& image, std::span<const SegmentMask> masks);
  void finish();  // files of all images

 private:
  std::string file(const std::filesystem::path& base, const char* extension, Kind kind) const;

  std::filesystem::path folder_;
  FileSet images_read_;
  bool force_;
  SegmentFiles files_;
  double opacity_;
  bool everything_;
  UniqueNames names_;
  std::optional<CocoFile> coco_;
  int64_t images_ = 0;
};

}  // namespace vitrail::app
