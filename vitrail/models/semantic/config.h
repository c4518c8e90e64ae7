// SPDX-License-Identifier: Apache-2.0
#pragma once
// The configuration of a semantic segmenter: a Vision Transformer with a head that classifies patches or pixels.
#include <string>
#include <vector>

#include "vitrail/base/fields.h"
#include "vitrail/models/dense/config.h"

namespace vitrail::models {

// linear: a linear layer on the features of each patch (Oquab et al. 2023, "DINOv2", section 7.4).
enum class SemanticHead : uint8_t { linear };

struct SemanticConfig : DenseConfig {
  SemanticHead head = SemanticHead::linear;
  bool batch_norm = false;            // linear: a batch normalisation in front of the layer
  std::vector<std::string> labels{};  // the names of the classes, in index order

  int64_t num_classes() const { return static_cast<int64_t>(labels.size()); }
};

// "segmentation" in vitrail's own config.json: the head, its classes and the input's size.
void describe_segmentation(Fields& fields, SemanticConfig& config);

// Reads config.json: vitrail's own, which is that of an image model with "segmentation" beside.  `path` names it in
// errors.
SemanticConfig read_semantic_config(const std::string& config, const std::string& path);

// vitrail's own config.json.  Its tensors are named as SemanticSegmenter's parameters.
std::string write_semantic_config(const SemanticConfig& config);

}  // namespace vitrail::models
