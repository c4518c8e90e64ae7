// SPDX-License-Identifier: Apache-2.0
#pragma once
// Attention of an image as maps and as a figure, by the options of `vitrail attention`.
#include <string>
#include <vector>

#include "vitrail/base/fields.h"
#include "vitrail/pipeline/attention_figure.h"
#include "vitrail/pipeline/model.h"

namespace vitrail::pipeline {

struct AttentionOptions {
  std::string layer = "-1";         // the index of a block (negative: from the end), or all
  std::string head = "mean";        // the index of a head, mean, or all
  std::vector<int64_t> query = {};  // X, Y in pixels of the image; empty: the class token
  bool rollout = false;             // attention rollout over all blocks
};

void describe_attention(Fields& fields, AttentionOptions& options);

// Throws Error for a layer or head that the model does not have, naming the field.
void check_attention(const Model& model, const AttentionOptions& options);

// The attention weights [1, H, N, N] of all blocks, or of the selected one if nothing needs the others.  Throws Error
// for a layer that the model does not have.
infer::Request attention_request(const Model& model, const AttentionOptions& options, bool all_blocks = false);

// An image whose attention was computed.
struct AttendedImage {
  std::string name;             // for the caption
  int64_t width, height;        // size of the photograph
  std::array<int64_t, 2> size;  // height and width of the model's input
  std::vector<Tensor> weights;  // the results of the request, each [1, H, N, N]
};

struct AttentionMaps {
  std::vector<AttentionMap> maps = {};
  std::optional<std::array<int64_t, 2>> query = {};  // row and column of the patch that attends
  std::string attending = {};                        // "the class token"
};

// Throw Error for a layer or head that the model does not have, and for a pixel that it does not see.
AttentionMaps attention_maps(const Model& model, const AttentionOptions& options, const AttendedImage& image);
// logits: for the caption; undefined: without a prediction.
image::Image attention_figure(const Model& model, const AttentionOptions& options, const image::Image& photo,
                              const AttendedImage& image, const Tensor& logits);

}  // namespace vitrail::pipeline
