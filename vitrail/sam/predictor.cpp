// SPDX-License-Identifier: Apache-2.0
#include "vitrail/sam/predictor.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string_view>
#include <utility>

#include "vitrail/base/error.h"
#include "vitrail/base/parallel.h"
#include "vitrail/infer/function_session.h"
#include "vitrail/models/sam/sam.h"
#include "vitrail/ops/elementwise.h"
#include "vitrail/ops/tokens.h"
#include "vitrail/sam/binary_mask.h"
#include "vitrail/sam/image_input_internal.h"

namespace vitrail::sam {
namespace {

using models::SamPoint;

// Prompts that run together.  A prompt's maps take tens of megabytes, so that more of them are no quicker.
constexpr size_t kMaxBatch = 8;

// Fewer prompts without a mask are quicker without the projections of the image than with computing them.
constexpr size_t kManyPrompts = 3;

// The inputs of the mask decoder's session in front of the image's features.
constexpr size_t kDecoderInputs = 4;

// The prompts of a group have as many tokens, and all or none of them has a mask.
using Group = std::pair<size_t, bool>;

// A padding point follows the points if there is no box, for some models always.
size_t tokens_of(const Prompt& prompt, bool pads_boxes) {
  if (prompt.box) return prompt.points.size() + (pads_boxes ? 3 : 2);
  return prompt.points.empty() ? 0 : prompt.points.size() + 1;
}

// The mask for a prompt that wants one (models::SamStability).  logits [masks, h, w]
int64_t single_mask(const Tensor& logits, std::span<const float> iou,
                    const std::optional<models::SamStability>& stability) {
  if (!stability) return 0;
  const float score = stability_score(logits.select(0, 0), static_cast<float>(stability->delta));
  if (!(score < stability->threshold)) return 0;  // NaN, of an empty mask, is stable
  return std::max_element(iou.begin() + 1, iou.end()) - iou.begin();
}

bool has_projections(const ImageEmbedding& embedding) {
  return embedding.projections.defined() && embedding.decoder_input.defined();
}

// Attention between few tokens and many reads the projections' weights (nn/downsampled_attention.h).
std::vector<std::string> cross_attention_layers(const models::Sam& sam) {
  const std::string_view suffix = ".weight";
  std::vector<std::string> layers;
  for (const nn::NamedTensor& parameter : sam.named_parameters()) {
    const std::string& name = parameter.name;
    if (name.starts_with("mask_decoder.transformer.") && name.ends_with("_proj.weight"))
      layers.push_back(name.substr(0, name.size() - suffix.size()));
  }
  return layers;
}

}  // namespace

struct Predictor::Model {
  models::Sam sam;
  Tensor positions;  // [1, h, w, C]; undefined for an image encoder alone
  std::vector<models::SamFeature> features;
  int threads;
  std::unique_ptr<infer::FunctionSession> image_encoder, mask_encoder, image_projector, mask_decoder;

  Model(models::Sam loaded, const PredictorOptions& options)
      : sam(std::move(loaded)),
        positions(has_decoder() ? sam.prompt_encoder().grid_positions() : Tensor()),
        features(sam.features()),
        threads(options.threads) {
    const infer::FunctionOptions session{.threads = options.threads};
    infer::FunctionOptions encoder_session{.threads = options.threads, .precision = options.precision};
    encoder_session.excluded_layers = sam.outer_layers();
    image_encoder = std::make_unique<infer::FunctionSession>(
        sam,
        [this](const infer::NamedTensors& in) -> infer::NamedTensors {
          const models::SamImage image = sam.encode(in[0].tensor);
          infer::NamedTensors out{{"embedding", image.embedding}};
          for (size_t i = 0; i < features.size(); ++i) out.push_back({features[i].name, image.features[i]});
          return out;
        },
        encoder_session);
    mask_encoder = std::make_unique<infer::FunctionSession>(
        sam,
        [this](const infer::NamedTensors& in) -> infer::NamedTensors {
          return {{"dense", sam.prompt_encoder().mask(in[0].tensor)}};
        },
        session);
    const infer::FunctionOptions decoder_session{.threads = options.threads,
                                                 .retained_layers = cross_attention_layers(sam)};
    image_projector = std::make_unique<infer::FunctionSession>(
        sam,
        [this](const infer::NamedTensors& in) -> infer::NamedTensors {
          const Tensor image = ops::add(in[0].tensor, sam.prompt_encoder().no_mask());
          return {{"projections", sam.mask_decoder().project(image, positions)}, {"image", image}};
        },
        decoder_session);
    mask_decoder = std::make_unique<infer::FunctionSession>(
        sam,
        [this](const infer::NamedTensors& in) -> infer::NamedTensors {
          const bool projected = in[3].tensor.numel() > 0;
          const Tensor image = projected ? in[0].tensor : ops::add(in[0].tensor, in[1].tensor);
          std::vector<Tensor> maps;
          for (size_t i = kDecoderInputs; i < in.size(); ++i) maps.push_back(in[i].tensor);
          const models::SamMasks masks =
              sam.mask_decoder().forward(image, positions, in[2].tensor, maps, projected ? in[3].tensor : Tensor());
          infer::NamedTensors out{{"logits", masks.logits}, {"iou", masks.iou}};
          if (masks.object_score.defined()) out.push_back({"object_score", masks.object_score});
          return out;
        },
        decoder_session);
  }

  int64_t image_size() const { return sam.config().encoder.image_size(); }
  InputFrame frame() const { return input_frame(sam.config()); }
  int64_t grid() const { return sam.config().encoder.grid; }
  bool has_decoder() const { return sam.config().has_decoder; }
  bool high_quality() const { return sam.config().decoder.high_quality; }
  // The 3×3 convolutions of HQ-SAM take ten times the memory of the other layers.
  size_t max_batch() const { return high_quality() ? 1 : kMaxBatch; }
  Shape embedding_shape() const { return {sam.config().decoder.dim, grid(), grid()}; }
  Shape projections_shape() const;
  void check(const ImageEmbedding& embedding) const;  // throws Error for an embedding of another model
  void project(const Tensor& image, ImageEmbedding& embedding) const;
  Tensor point_tokens(const ImageEmbedding& embedding, const std::vector<const Prompt*>& prompts) const;
  Tensor dense_prompts(const std::vector<const Prompt*>& prompts) const;
  std::vector<Masks> decode(const ImageEmbedding& embedding, const Tensor& image,
                            const std::vector<const Prompt*>& prompts) const;
};

Shape Predictor::Model::projections_shape() const { return {3, grid() * grid(), sam.config().decoder.cross_dim}; }

void Predictor::Model::check(const ImageEmbedding& embedding) const {
  const auto got = [](const Tensor& tensor, const char* none) {
    return tensor.defined() ? tensor.shape().to_string() : none;
  };
  const Tensor &values = embedding.values, &projections = embedding.projections, &input = embedding.decoder_input;
  if (!values.defined() || !(values.shape() == embedding_shape()) || embedding.width < 1 || embedding.height < 1) {
    throw Error("embedding", str(embedding_shape(), ", as this model computes it"), got(values, "none"));
  }
  for (size_t i = 0; i < features.size(); ++i) {
    const Tensor map = i < embedding.features.size() ? embedding.features[i] : Tensor();
    if (!map.defined() || !(map.shape() == features[i].shape))
      throw Error("embedding", str(features[i].name, " ", features[i].shape), got(map, "an embedding without them"));
  }
  if (projections.defined() && !(projections.shape() == projections_shape())) {
    throw Error("embedding", str("projections ", projections_shape(), ", or none"), got(projections, ""));
  }
  const Shape input_shape{grid(), grid(), embedding_shape()[0]};
  if (input.defined() && !(input.shape() == input_shape))
    throw Error("embedding", str("a decoder input ", input_shape, ", or none"), got(input, ""));
}

// Computes what prompts without a mask share.  image [1, h, w, C]: the embedding's values, channels last.
void Predictor::Model::project(const Tensor& image, ImageEmbedding& embedding) const {
  const infer::NamedTensors result = image_projector->run({{"image", image}});
  embedding.projections = result[0].tensor;
  embedding.decoder_input = result[1].tensor.squeeze(0);
}

// The decoder's tokens.  All prompts have as many: points, padding, corners.
Tensor Predictor::Model::point_tokens(const ImageEmbedding& embedding,
                                      const std::vector<const Prompt*>& prompts) const {
  const auto [height, width] = frame().sides(embedding.height, embedding.width);
  const double down = static_cast<double>(height) / static_cast<double>(embedding.height);
  const double across = static_cast<double>(width) / static_cast<double>(embedding.width);
  std::vector<double> coordinates;
  std::vector<SamPoint> kinds;
  auto add = [&](double x, double y, SamPoint kind) {
    coordinates.push_back(x * across);
    coordinates.push_back(y * down);
    kinds.push_back(kind);
  };
  for (const Prompt* prompt : prompts) {
    for (const Point& point : prompt->points) {
      add(point.x, point.y, point.label == 1 ? SamPoint::inside : SamPoint::outside);
    }
    if (prompt->box) {
      add(prompt->box->x0, prompt->box->y0, SamPoint::top_left);
      add(prompt->box->x1, prompt->box->y1, SamPoint::bottom_right);
    }
    const bool pads = prompt->box ? sam.config().decoder.pads_boxes : !prompt->points.empty();
    if (pads) add(0, 0, SamPoint::padding);
  }
  const auto batch = static_cast<int64_t>(prompts.size()), tokens = static_cast<int64_t>(kinds.size()) / batch;
  return sam.mask_decoder().tokens(
      sam.prompt_encoder().points(Tensor::from<double>({batch, tokens, 2}, coordinates), kinds));
}

Tensor Predictor::Model::dense_prompts(const std::vector<const Prompt*>& prompts) const {
  if (!prompts[0]->mask_logits.defined()) return sam.prompt_encoder().no_mask();
  std::vector<Tensor> masks;
  for (const Prompt* prompt : prompts) masks.push_back(prompt->mask_logits.unsqueeze(0).unsqueeze(0));
  return mask_encoder->run({{"logits", ops::cat(masks, 0)}})[0].tensor;
}

std::vector<Masks> Predictor::Model::decode(const ImageEmbedding& embedding, const Tensor& image,
                                            const std::vector<const Prompt*>& prompts) const {
  // A mask prompt changes the image that is projected.
  const bool projected = has_projections(embedding) && !prompts[0]->mask_logits.defined();
  infer::NamedTensors inputs{{"image", projected ? embedding.decoder_input.unsqueeze(0) : image},
                             {"dense", dense_prompts(prompts)},
                             {"tokens", point_tokens(embedding, prompts)},
                             {"projections", projected ? embedding.projections : Tensor::zeros({3, 0, 1})}};
  for (size_t i = 0; i < features.size(); ++i) inputs.push_back({features[i].name, embedding.features[i].unsqueeze(0)});
  const infer::NamedTensors result = mask_decoder->run(inputs);
  std::vector<Masks> masks;
  for (size_t i = 0; i < prompts.size(); ++i) {
    const Tensor logits = result[0].tensor.select(0, static_cast<int64_t>(i));
    const Tensor iou = result[1].tensor.select(0, static_cast<int64_t>(i));
    const std::span<const float> scores(iou.data<float>(), static_cast<size_t>(iou.numel()));
    const bool several = prompts[i]->multimask;
    const int64_t first = several ? 1 : single_mask(logits, scores, sam.config().decoder.single_mask_stability);
    const int64_t count = several ? logits.size(0) - 1 : 1;
    masks.push_back({logits.narrow(0, first, count).clone(), {&scores[first], &scores[first] + count}});
    if (result.size() > 2) masks.back().object_score = result[2].tensor.data<float>()[i];
  }
  return masks;
}

Predictor::Predictor(const models::ModelFiles& files, const PredictorOptions& options)
    : Predictor(models::load_sam(files, {options.preprocessing}), options, files.path.string()) {}

Predictor::Predictor(models::Sam sam, const PredictorOptions& options, const std::string& where) {
  if (const int64_t channels = sam.config().encoder.in_chans; channels != 3) {
    throw Error(where, "an image encoder of RGB images", str(channels, " channels"));
  }
  model_ = std::make_unique<const Model>(std::move(sam), options);
}

Predictor::~Predictor() = default;

ImageEmbedding Predictor::embed(const image::ImageView& image) const {
  const int64_t size = image_size();
  const Tensor input = Tensor::empty({1, 3, size, size});
  const InputFrame frame = model_->frame();
  frame.write(frame.resized(image), input.data<float>());
  const infer::NamedTensors result = model_->image_encoder->run({{"image", input}});
  ImageEmbedding embedding{.values = result[0].tensor.select(0, 0).permute({2, 0, 1}).contiguous(),
                           .width = image.width(),
                           .height = image.height()};
  for (size_t i = 1; i < result.size(); ++i) embedding.features.push_back(result[i].tensor.select(0, 0));
  if (has_decoder()) model_->project(result[0].tensor, embedding);
  return embedding;
}

Masks Predictor::predict(const ImageEmbedding& embedding, const Prompt& prompt) const {
  return std::move(predict(embedding, std::span(&prompt, 1)).front());
}

std::vector<Masks> Predictor::predict(const ImageEmbedding& given, std::span<const Prompt> prompts) const {
  model_->check(given);
  static_cast<void>(model_->sam.mask_decoder());  // an Error for an image encoder alone
  ImageEmbedding embedding = given;               // shares its tensors
  std::map<Group, std::vector<size_t>> groups;
  for (size_t i = 0; i < prompts.size(); ++i) {
    const std::string where = prompts.size() == 1 ? "prompt" : str("prompt ", i);
    check_prompt(prompts[i], embedding.width, embedding.height, mask_size(), where);
    groups[{tokens_of(prompts[i], model_->sam.config().decoder.pads_boxes), prompts[i].mask_logits.defined()}]
        .push_back(i);
  }
  const auto without_mask =
      static_cast<size_t>(std::ranges::count_if(prompts, [](const Prompt& p) { return !p.mask_logits.defined(); }));
  Tensor image;  // [1, h, w, C], for prompts without projections
  if (!has_projections(embedding) || without_mask < prompts.size())
    image = embedding.values.permute({1, 2, 0}).contiguous().unsqueeze(0);
  if (!has_projections(embedding) && without_mask >= kManyPrompts) model_->project(image, embedding);
  std::vector<Masks> results(prompts.size());
  for (const auto& [group, indices] : groups) {
    for (size_t first = 0; first < indices.size(); first += model_->max_batch()) {
      const size_t count = std::min(model_->max_batch(), indices.size() - first);
      std::vector<const Prompt*> batch;
      for (size_t i = 0; i < count; ++i) batch.push_back(&prompts[indices[first + i]]);
      std::vector<Masks> masks = model_->decode(embedding, image, batch);
      for (size_t i = 0; i < count; ++i) results[indices[first + i]] = std::move(masks[i]);
    }
  }
  return results;
}

Tensor Predictor::image_logits(const Tensor& mask, int64_t width, int64_t height) const {
  if (!(mask.shape() == Shape{mask_size(), mask_size()}) || width < 1 || height < 1) {
    throw Error("mask", str("logits [", mask_size(), ", ", mask_size(), "] and an image of at least 1×1"),
                str(mask.shape(), ", ", width, "×", height));
  }
  const ComputeTeam team(model_->threads > 0 ? model_->threads : available_threads());
  return model_->frame().image_logits(mask, height, width);
}

int64_t Predictor::image_size() const { return model_->image_size(); }
bool Predictor::has_decoder() const { return model_->has_decoder(); }
bool Predictor::high_quality() const { return model_->high_quality(); }
bool Predictor::second_generation() const { return model_->sam.config().encoder.hiera.has_value(); }
double Predictor::pred_iou_thresh() const { return second_generation() ? kPredIouThresh2 : kPredIouThresh; }
std::vector<Shape> Predictor::feature_shapes() const {
  std::vector<Shape> shapes;
  for (const models::SamFeature& feature : model_->features) shapes.push_back(feature.shape);
  return shapes;
}
int64_t Predictor::mask_size() const { return model_->sam.config().mask_size(); }
int64_t Predictor::multimask_count() const { return model_->sam.config().decoder.mask_tokens - 1; }
Shape Predictor::embedding_shape() const { return model_->embedding_shape(); }

}  // namespace vitrail::sam
