// SPDX-License-Identifier: Apache-2.0
#pragma once
// Images with and without defects, in the layout of MVTec AD (Bergmann et al. 2021):
//   SET/test/good/*           good images
//   SET/test/KIND/*           images with a defect of this kind
//   SET/ground_truth/KIND/*   a mask for each, NAME_mask.png or NAME.png: 0 where the image is good
// Without a folder test, SET has the folders of good and KIND.  Without ground_truth there are no masks.
#include <filesystem>
#include <string>
#include <vector>

namespace vitrail::anomaly {

struct TestImage {
  std::string path;
  std::string kind;  // "good", or the folder of the defect
  std::string mask;  // empty: a good image, or no masks

  bool is_good() const { return kind == "good"; }
};

struct DefectSet {
  std::vector<TestImage> images;
  bool has_masks = false;
};

// Throws Error for a folder without good images, without defects, and for a defect without its mask where others have
// one.
DefectSet open_defect_set(const std::filesystem::path& folder);

}  // namespace vitrail::anomaly
