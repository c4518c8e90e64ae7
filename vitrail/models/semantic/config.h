// SPDX-License-Identifier: Apache-2.0
#pragma once
// The configuration of a semantic segmenter: a Vision Transformer with a head that classifies patches or pixels.
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "vitrail/base/fields.h"
#include "vitrail/models/dense/config.h"

namespace vitrail::models {

// linear: a linear layer on the features of each patch (Oquab et al. 2023, "DINOv2", section 7.4); dpt: maps of several
// blocks, fused from the coarsest to the finest (Ranftl et al. 2021); upernet: a pyramid with pooled maps (Xiao et al.
// 2018).
enum class SemanticHead : uint8_t { linear, dpt, upernet };

// Overlapping windows of the resized image, each padded around its centre to whole patches (MMSegmentation's mode
// "slide" with DINOv2's CenterPadding).
struct SlidingWindow {
  std::array<int64_t, 2> size{512, 512}, stride{341, 341};  // height, width
};

// Where a window is, and the size {height, width} of its input.
struct WindowPlace {
  int64_t top = 0, left = 0, height = 0, width = 0;
  std::array<int64_t, 2> input{};
};

struct SemanticConfig : DenseConfig {
  SemanticHead head = SemanticHead::linear;
  // linear: a batch normalisation in front of the layer; dpt: one behind the head's first convolution.
  bool batch_norm = false;
  DptNeckConfig neck{};                          // dpt
  std::vector<int64_t> pool_scales{1, 2, 3, 6};  // upernet
  std::vector<std::string> labels{};             // the names of the classes, in index order
  std::optional<SlidingWindow> window{};         // none: the image at once

  int64_t num_classes() const { return static_cast<int64_t>(labels.size()); }
};

// The windows of a resized image; of a model without, the image.
std::vector<WindowPlace> windows_of(const SemanticConfig& config, int64_t height, int64_t width);

// "segmentation" in vitrail's own config.json: the head, its classes and the input's size.
void describe_segmentation(Fields& fields, SemanticConfig& config);

// Reads config.json: vitrail's own, which is that of an image model with "segmentation" beside; or transformers' of a
// DPTForSemanticSegmentation, BeitForSemanticSegmentation or Data2VecVisionForSemanticSegmentation, with its
// preprocessor_config.json (empty: its defaults).  The paths name them in errors.
SemanticConfig read_semantic_config(const std::string& config, const std::string& path,
                                    const std::string& preprocessor = "", const std::string& preprocessor_path = "");

// vitrail's own config.json, of a linear or a dpt head.  Its tensors are named as SemanticSegmenter's parameters.
std::string write_semantic_config(const SemanticConfig& config);

}  // namespace vitrail::models
