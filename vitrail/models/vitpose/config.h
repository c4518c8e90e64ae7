// SPDX-License-Identifier: Apache-2.0
#pragma once
// The configuration of ViTPose and ViTPose++.
#include <array>
#include <string>
#include <vector>

#include "vitrail/models/preprocessing.h"
#include "vitrail/models/vision_transformer_config.h"
#include "vitrail/weights/checkpoint.h"

namespace vitrail::models {

struct VitPoseConfig {
  std::string architecture = "vitpose";  // transformers' model_type
  VisionTransformerConfig backbone{};    // its img_size is that of the crop of a person
  // ViTPose++: the last expert_features outputs of each MLP are those of the expert for a data set of the training.
  int64_t num_experts = 1;  // 1: none
  int64_t expert_features = 0;
  bool simple_decoder = true;                   // bilinear interpolation, or else two transposed convolutions
  int64_t scale_factor = 4;                     // from the patches to the simple decoder's heat maps
  std::vector<std::string> keypoints{};         // their names
  std::vector<std::array<int64_t, 2>> limbs{};  // the key points at both ends
  Preprocessing preprocessing{};

  int64_t num_keypoints() const { return static_cast<int64_t>(keypoints.size()); }
};

// The side of a person that the name of a key point says: "left_eye", "Right ear", "L_Hip".
enum class BodySide : uint8_t { none, left, right };
BodySide side_of(const std::string& keypoint);

// The index of the counterpart of each key point on the other side, by the names; its own without one.
std::vector<int64_t> mirrored_keypoints(const std::vector<std::string>& names);

// Reads transformers' config.json of a vitpose, and its preprocessor_config.json (empty: its defaults).  The paths name
// them in errors.
VitPoseConfig read_vitpose_config(const std::string& config, const std::string& path, const std::string& preprocessor,
                                  const std::string& preprocessor_path);

// The configuration of the authors' file, from the shapes of its tensors.  dataset: its head.
VitPoseConfig vitpose_config_of_file(const weights::Checkpoint& checkpoint, int64_t dataset);

// transformers' config.json and preprocessor_config.json of such a model.
std::string write_vitpose_config(const VitPoseConfig& config);
std::string write_vitpose_processor(const VitPoseConfig& config);

// The prefix of the names of a data set's head in the authors' file.
std::string authors_head(int64_t dataset);

}  // namespace vitrail::models
