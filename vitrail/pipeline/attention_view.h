// SPDX-License-Identifier: Apache-2.0
#pragma once
// Attention of an image as maps and as a figure, by the options of `vitrail attention`.
#include <string>
#include <vector>

#include "vitrail/base/fields.h"
#include "vitrail/pipeline/attention_figure.h"
#include "vitrail/pipeline/attribution.h"
#include "vitrail/pipeline/model.h"

namespace vitrail::pipeline {

struct AttentionOptions {
  std::string layer = "-1";         // the index of a block (negative: from the end), or all
  std::string head = "mean";        // the index of a head, mean, or all
  std::vector<int64_t> query = {};  // X, Y in pixels of the image; empty: the class token
  bool rollout = false;             // the method "rollout", by another name
  // "attention": the weights of a layer; "rollout": over all blocks; or one of attribution_methods().
  std::string method = "attention";
  AttributionOptions attribution = {};  // read by attribution_methods()
};

void describe_attention(Fields& fields, AttentionOptions& options);

// The row of the options' method; null if it needs attention weights alone.
const AttributionMethod* attribution_method(const AttentionOptions& options);

// Throws Error, naming the field, for a layer, head or class that the model does not have, and for a field that the
// method does not read.
void check_attention(const Model& model, const AttentionOptions& options);

// The attention weights [1, H, N, N] of all blocks, or of the selected one if nothing needs the others.  Throws Error
// for a layer that the model does not have.
infer::Request attention_request(const Model& model, const AttentionOptions& options, bool all_blocks = false);

// An image whose attention was computed, or the attribution of a class's logit.
struct AttendedImage {
  std::string name;             // for the caption
  int64_t width, height;        // size of the photograph
  std::array<int64_t, 2> size;  // height and width of the model's input
  std::vector<Tensor> weights;  // the results of the request, each [1, H, N, N]
  std::optional<Attribution> attribution = {};
};

struct AttentionMaps {
  std::vector<AttentionMap> maps = {};
  std::optional<std::array<int64_t, 2>> query = {};  // row and column of the patch that attends
  std::string attending = {};                        // "the class token"; empty for an attribution
};

// Throw Error for a layer or head that the model does not have, and for a pixel that it does not see.
AttentionMaps attention_maps(const Model& model, const AttentionOptions& options, const AttendedImage& image);
// logits: for the caption; undefined: without a prediction.
image::Image attention_figure(const Model& model, const AttentionOptions& options, const image::Image& photo,
                              const AttendedImage& image, const Tensor& logits);

}  // namespace vitrail::pipeline
