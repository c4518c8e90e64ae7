// SPDX-License-Identifier: Apache-2.0
#pragma once
// Export of Segment Anything to ONNX: two graphs, with the names and shapes of segment-anything's own export
// (scripts/export_onnx_model.py), so that its clients run them.
#include <filesystem>

#include "vitrail/models/sam/sam.h"
#include "vitrail/onnx/export.h"

namespace vitrail::onnx {

struct SamOnnxFiles {
  std::filesystem::path encoder, decoder;
};

// For "sam.onnx": "sam.encoder.onnx" and "sam.decoder.onnx".
SamOnnxFiles sam_onnx_files(const std::filesystem::path& path);

struct SamOnnxOptions {
  // dynamic_batch and input are of the encoder; the decoder takes one image and one prompt.
  OnnxOptions file = {};
  // One mask for a prompt: with less than three points that of the best score, else the one for a single mask, as
  // segment-anything's --return-single-mask; of SAM 2 as models::SamStability.  Otherwise all four.
  bool single_mask = false;
};

// Writes both files in fp32; of an image encoder alone, the encoder.
// Encoder: image → image_embeddings [N, C, h, w].  float32: the normalised and padded image [N, 3, S, S].  uint8:
// pixels [N, height, width, 3] of at most S × S, which the graph normalises and pads on the right and below. Decoder:
// image_embeddings [1, C, h, w]; point_coords [1, num_points, 2] in pixels of the resized image, and point_labels [1,
// num_points]: 1 inside, 0 outside, 2 and 3 the corners of a box, -1 padding, which follows points without a box;
// mask_input [1, 1, 4·h, 4·w]; has_mask_input [1]; orig_im_size [2], height and width; all float32 → masks [1, M,
// height, width], logits; iou_predictions [1, M]; low_res_masks [1, M, 4·h, 4·w].
// HQ-SAM: the encoder also gives, and the decoder takes, interm_embeddings [1, N, h, w, D], as in segment-anything-hq.
// Its mask is added to each of the others.
// SAM 2: the encoder also gives, and the decoder takes, high_res_features_0 [N, C/8, 4·h, 4·w] and high_res_features_1
// [N, C/4, 2·h, 2·w]; images are resized to S × S without padding, uint8 pixels are [N, S, S, 3], and a padding point
// follows the corners of a box too.  Throws Error for options out of range, and if a file cannot be written.
void export_sam_onnx(const models::Sam& sam, const std::filesystem::path& path, const SamOnnxOptions& options = {});

}  // namespace vitrail::onnx
