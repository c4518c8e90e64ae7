// SPDX-License-Identifier: Apache-2.0
#include "vitrail/onnx/sam_decoder_internal.h"

#include <numbers>

#include "vitrail/base/error.h"
#include "vitrail/onnx/export_internal.h"
#include "vitrail/onnx/lowering_internal.h"

namespace vitrail::onnx {
namespace {

constexpr const char *kEmbeddings = "image_embeddings", *kCoordinates = "point_coords", *kLabels = "point_labels",
                     *kMask = "mask_input", *kHasMask = "has_mask_input", *kSize = "orig_im_size",
                     *kIntermediate = "interm_embeddings";

class DecoderGraph {
 public:
  DecoderGraph(const models::Sam& sam, const SamOnnxOptions& options)
      : sam_(sam),
        options_(options),
        names_(parameter_names(sam)),
        lowering_(graph_, names_, {.opset = options.file.opset, .outermost = Outermost::elements}) {}

  GraphBuilder build();

 private:
  struct Masks {
    std::string logits, iou;
  };
  int64_t grid() const { return sam_.config().encoder.grid; }
  int64_t dim() const { return sam_.config().decoder.dim; }
  int64_t mask_size() const { return sam_.config().mask_size(); }
  int64_t masks() const { return options_.single_mask ? 1 : sam_.config().decoder.mask_tokens; }

  void add_inputs();
  std::string parameter(const std::string& name);
  std::string point_tokens();
  std::string image();
  std::vector<Tensor> features();
  std::string mask_bonus(const Masks& all);
  Masks decoded();
  Masks best(const Masks& all);
  std::string resized(const std::string& masks, const std::string& sizes);
  std::string enlarged(const std::string& masks);

  const models::Sam& sam_;
  const SamOnnxOptions& options_;
  std::map<const Storage*, std::string> names_;
  GraphBuilder graph_;
  Lowering lowering_;
};

void DecoderGraph::add_inputs() {
  graph_.add_input({kEmbeddings, DType::f32, {1, dim(), grid(), grid()}});
  if (const models::SamHqHead* const head = sam_.hq_head())
    graph_.add_input({kIntermediate, DType::f32, {1, 1, grid(), grid(), head->intermediate_width()}});
  if (!sam_.hq_head()) {
    for (const auto& [name, shape] : sam_.features())
      graph_.add_input({name, DType::f32, {1, shape[2], shape[0], shape[1]}});
  }
  graph_.add_input({kCoordinates, DType::f32, {1, kNumPoints, 2}});
  graph_.add_input({kLabels, DType::f32, {1, kNumPoints}});
  graph_.add_input({kMask, DType::f32, {1, 1, mask_size(), mask_size()}});
  graph_.add_input({kHasMask, DType::f32, {1}});
  graph_.add_input({kSize, DType::f32, {2}});
}

std::string DecoderGraph::parameter(const std::string& name) {
  return graph_.constant(sam_.prompt_encoder().parameter(name).to(DType::f32), "prompt_encoder." + name);
}

// [1, N, C]: random Fourier features of the coordinates, 0 for padding, plus the embedding of the label.
std::string DecoderGraph::point_tokens() {
  const auto size = static_cast<double>(sam_.config().encoder.image_size());
  const std::string centres = graph_.node("Add", {kCoordinates, graph_.scalar(0.5)});
  const std::string scaled = graph_.node("Mul", {centres, graph_.scalar(2 / size)});  // to [−1, 1]
  const std::string frequencies = graph_.node("MatMul", {graph_.node("Sub", {scaled, graph_.scalar(1)}),
                                                         parameter("pe_layer.positional_encoding_gaussian_matrix")});
  const std::string phases = graph_.node("Mul", {frequencies, graph_.scalar(2 * std::numbers::pi)});
  const std::string features = graph_.concat({graph_.node("Sin", {phases}), graph_.node("Cos", {phases})}, 2);
  const std::string labels = graph_.node("Unsqueeze", {kLabels, graph_.constant(Ints{2})});
  const std::string padding = graph_.cast(graph_.node("Equal", {labels, graph_.scalar(-1)}), DType::f32);
  const std::string visible = graph_.node("Sub", {graph_.scalar(1), padding});
  std::vector<std::string> table{parameter("not_a_point_embed.weight")};
  std::vector<float> kinds{-1};
  for (int i = 0; i < 4; ++i) {
    table.push_back(parameter(str("point_embeddings.", i, ".weight")));
    kinds.push_back(static_cast<float>(i));
  }
  const std::string known = graph_.constant(Tensor::from<float>({1, 1, 5}, kinds), "point_kinds");
  const std::string one_hot = graph_.cast(graph_.node("Equal", {labels, known}), DType::f32);
  return graph_.node(
      "Add", {graph_.node("Mul", {features, visible}), graph_.node("MatMul", {one_hot, graph_.concat(table, 0)})});
}

// The maps that the decoder reads, [1, …, …, …] each.  Those of HQ-SAM are recorded.
std::vector<Tensor> DecoderGraph::features() {
  const models::SamHqHead* const head = sam_.hq_head();
  if (!head) {
    std::vector<Tensor> maps;
    for (const auto& [name, shape] : sam_.features()) {
      maps.push_back(Tensor::empty({1, shape[0], shape[1], shape[2]}, DType::f32, Device::meta));
      lowering_.bind(maps.back(), graph_.transpose(name, {0, 2, 3, 1}));
    }
    return maps;
  }
  const Tensor embedding = Tensor::empty({1, grid(), grid(), dim()}, DType::f32, Device::meta);
  const Tensor intermediate = Tensor::empty({1, grid(), grid(), head->intermediate_width()}, DType::f32, Device::meta);
  lowering_.bind(embedding, graph_.transpose(kEmbeddings, {0, 2, 3, 1}));
  lowering_.bind(intermediate, graph_.reshape(kIntermediate, {1, grid(), grid(), head->intermediate_width()}));
  return {head->features(embedding, intermediate)};
}

// [1, h, w, C]: the embedding plus the mask prompt, or what stands for none.
std::string DecoderGraph::image() {
  const Tensor mask = Tensor::empty({1, 1, mask_size(), mask_size()}, DType::f32, Device::meta);
  const ops::Recorder recorder;
  const Tensor dense = sam_.prompt_encoder().mask(mask);
  lowering_.bind(mask, kMask);
  for (const ops::RecordedOperation& operation : recorder.operations()) lowering_.lower(operation);
  const std::string given = graph_.node("Mul", {lowering_.value_of(dense), kHasMask});
  const std::string none = graph_.node(
      "Mul", {lowering_.value_of(sam_.prompt_encoder().no_mask()), graph_.node("Sub", {graph_.scalar(1), kHasMask})});
  return graph_.node("Add", {graph_.transpose(kEmbeddings, {0, 2, 3, 1}), graph_.node("Add", {given, none})});
}

DecoderGraph::Masks DecoderGraph::decoded() {
  // The graph holds for any number.  With so many, attention records its plain formula (nn/downsampled_attention.h).
  constexpr int64_t kRecordedPoints = 1000;
  const Tensor image_input = Tensor::empty({1, grid(), grid(), dim()}, DType::f32, Device::meta);
  const Tensor points = Tensor::empty({1, kRecordedPoints, dim()}, DType::f32, Device::meta);
  lowering_.bind(image_input, image());
  lowering_.bind(points, point_tokens());
  const ops::Recorder recorder;
  const models::SamMaskDecoder& decoder = sam_.mask_decoder();
  const models::SamMasks result =
      decoder.forward(image_input, sam_.prompt_encoder().grid_positions(), decoder.tokens(points), features());
  for (const ops::RecordedOperation& operation : recorder.operations()) lowering_.lower(operation);
  return {lowering_.value_of(result.logits), lowering_.value_of(result.iou)};
}

// What is added to the score of mask 0, times 1000: (num_points − 2.5) of Segment Anything (SamOnnxModel.select_masks);
// of SAM 2, 1 if the mask is stable, else −1.
std::string DecoderGraph::mask_bonus(const Masks& all) {
  if (!sam_.config().decoder.object_score) {
    const std::string points = graph_.cast(graph_.extent(kCoordinates, 1), DType::f32);
    return graph_.node("Sub", {points, graph_.scalar(2.5)});
  }
  const auto& stability = sam_.config().decoder.single_mask_stability;
  if (!stability) return graph_.scalar(1);
  const std::string mask = graph_.slice(all.logits, {1}, {0}, {1});
  const auto area_above = [&](double logit) {
    const std::string above = graph_.cast(graph_.node("Greater", {mask, graph_.scalar(logit)}), DType::f32);
    return graph_.node("ReduceSum", {graph_.reshape(above, {1, -1}), graph_.constant(Ints{1})},
                       {{"keepdims", int64_t{0}}});
  };
  const std::string needed = graph_.node("Mul", {area_above(-stability->delta), graph_.scalar(stability->threshold)});
  const std::string stable =
      graph_.cast(graph_.node("GreaterOrEqual", {area_above(stability->delta), needed}), DType::f32);
  return graph_.node("Sub", {graph_.node("Mul", {stable, graph_.scalar(2)}), graph_.scalar(1)});
}

// The mask of the largest score, with the bonus of mask 0.
DecoderGraph::Masks DecoderGraph::best(const Masks& all) {
  std::vector<float> weights(static_cast<size_t>(sam_.config().decoder.mask_tokens), 0);
  weights[0] = 1000;
  const std::string reweight =
      graph_.constant(Tensor::from<float>({1, static_cast<int64_t>(weights.size())}, weights), "score_reweight");
  const std::string bonus = graph_.node("Mul", {mask_bonus(all), reweight});
  const std::string index =
      graph_.node("ArgMax", {graph_.node("Add", {all.iou, bonus})}, {{"axis", int64_t{1}}, {"keepdims", int64_t{0}}});
  const auto chosen = [&](const std::string& x) { return graph_.node("Gather", {x, index}, {{"axis", int64_t{1}}}); };
  return {chosen(all.logits), chosen(all.iou)};
}

std::string DecoderGraph::resized(const std::string& masks, const std::string& sizes) {
  return graph_.node("Resize", {masks, "", "", sizes},
                     {{"mode", std::string("linear")}, {"coordinate_transformation_mode", std::string("half_pixel")}});
}

// To the padded frame, without its padding, to the image; without padding, to the image at once.  The sides without
// padding are rounded half up.
std::string DecoderGraph::enlarged(const std::string& masks_value) {
  const int64_t size = sam_.config().encoder.image_size();
  const std::string original = graph_.cast(kSize, DType::i64);
  const std::string image = graph_.concat({graph_.constant(Ints{1, masks()}), original}, 0);
  if (sam_.config().preprocessing != models::SamPreprocessing::segment_anything) return resized(masks_value, image);
  const std::string longest =
      graph_.node("Max", {graph_.slice(original, {0}, {0}, {1}), graph_.slice(original, {0}, {1}, {2})});
  const std::string doubled = graph_.node("Mul", {original, graph_.index(2 * size)});
  const std::string rounded =
      graph_.node("Div", {graph_.node("Add", {doubled, longest}), graph_.node("Mul", {longest, graph_.index(2)})});
  const std::string frame = resized(masks_value, graph_.constant(Ints{1, masks(), size, size}));
  const std::string cropped =
      graph_.node("Slice", {frame, graph_.constant(Ints{0, 0}), graph_.node("Max", {rounded, graph_.constant(Ints{1})}),
                            graph_.constant(Ints{2, 3})});
  return resized(cropped, image);
}

GraphBuilder DecoderGraph::build() {
  add_inputs();
  const Masks all = decoded(), result = options_.single_mask ? best(all) : all;
  graph_.add_output(enlarged(result.logits), {"masks", DType::f32, {1, masks(), kHeight, kWidth}});
  graph_.add_output(result.iou, {"iou_predictions", DType::f32, {1, masks()}});
  graph_.add_output(result.logits, {"low_res_masks", DType::f32, {1, masks(), mask_size(), mask_size()}});
  return std::move(graph_);
}

}  // namespace

GraphBuilder sam_decoder_graph(const models::Sam& sam, const SamOnnxOptions& options) {
  return DecoderGraph(sam, options).build();
}

}  // namespace vitrail::onnx
