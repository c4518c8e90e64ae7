// SPDX-License-Identifier: Apache-2.0
#pragma once
// The graph of Segment Anything's prompt encoder, mask decoder and enlargement of masks
// (segment_anything/utils/onnx.py).
#include "vitrail/onnx/export_sam.h"
#include "vitrail/onnx/graph_builder_internal.h"

namespace vitrail::onnx {

GraphBuilder sam_decoder_graph(const models::Sam& sam, const SamOnnxOptions& options);

}  // namespace vitrail::onnx
