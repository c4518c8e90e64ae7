// SPDX-License-Identifier: Apache-2.0
#include "vitrail/tasks/clipseg/clipseg_model.h"

#include <nlohmann/json.hpp>

#include "vitrail/models/dense/outer_layers.h"
#include "vitrail/pipeline/prediction_json_internal.h"
#include "vitrail/tasks/model_facts_internal.h"

namespace vitrail::tasks {
namespace {

// The tokens of the image, which are the same for all texts.
class ClipSegTokens : public Request {
 public:
  explicit ClipSegTokens(Shape shape) : shape_(shape) {}

  void compute(Item& item, const ImageEncoding* encoding, const ProgressCallback& /*progress*/) const override {
    item.results = {{static_cast<const ClipSegEncoding*>(encoding)->tokens.squeeze(0)}};
  }
  std::vector<Output> outputs() const override { return {{"tokens", shape_}}; }
  Tensor array(const Item& item, size_t /*output*/) const override { return item.results[0][0]; }
  std::string json(const Item& item) const override { return failure_json(item.name, "tokens are an array"); }

 private:
  Shape shape_;
};

constexpr const char* kNominalText = "a photo";

}  // namespace

struct ClipSegModel::Whole {
  models::ClipSegNetwork module;
  std::unique_ptr<infer::FunctionSession> session = {};

  infer::NamedTensors forward(const infer::NamedTensors& in) const {
    return {{"logits", module.forward(in[0].tensor, in[1].tensor)}};
  }
};

ClipSegModel::ClipSegModel(const models::ModelFiles& files, const OpenOptions& options)
    : threads_(require_no_others(options, "CLIPSeg").model.threads),
      precision_(options.model.precision.value_or(kernels::Precision::fp32)),
      files_(models::open_clipseg(files)),
      towers_(files_.towers, {.threads = threads_, .precision = precision_}),
      decoder_(models::build_clipseg_decoder(files_)) {
  session_ = std::make_unique<infer::FunctionSession>(
      decoder_,
      [this](const infer::NamedTensors& in) -> infer::NamedTensors {
        return {{"logits", decoder_.forward(in[0].tensor, in[1].tensor)}};
      },
      infer::FunctionOptions{
          .threads = threads_, .precision = precision_, .excluded_layers = models::outer_layers(decoder_)});
}

ClipSegModel::~ClipSegModel() = default;

// The text is embedded at once: inputs_of() may run in a trace, which is of the network alone.
std::optional<Network> ClipSegModel::network() const {
  std::call_once(whole_once_, [&] {
    auto whole = std::make_unique<Whole>(Whole{models::build_clipseg_network(files_)});
    whole->session = std::make_unique<infer::FunctionSession>(
        whole->module, [whole = whole.get()](const infer::NamedTensors& in) { return whole->forward(in); },
        infer::FunctionOptions{
            .threads = threads_, .precision = precision_, .excluded_layers = models::outer_layers(whole->module)});
    whole_ = std::move(whole);
  });
  const models::Preprocessing& pixels = files_.towers.config.preprocessing;
  const auto [height, width] = *pixels.input_size;
  return Network{
      .module = whole_->module,
      .forward = [this](const infer::NamedTensors& in) { return whole_->forward(in); },
      .session = *whole_->session,
      .inputs = {{"images",
                  Tensor::empty({1, files_.towers.config.vit.in_chans, height, width}, DType::f32, Device::meta)},
                 {"text", Tensor::empty({1, files_.config.text_dim}, DType::f32, Device::meta)}},
      .pixels = &pixels,
      .inputs_of = [this, text = embed({kNominalText})](const image::ImageView& photo) -> infer::NamedTensors {
        return {{"images", towers_.images().preprocess({&photo, 1})}, {"text", text}};
      },
      .options = {{"text", kNominalText}},
      .key_map = files_.key_map,
      .config_json = files_.config_json,
      .preprocessor_json = files_.preprocessor_json};
}

std::string ClipSegModel::config() const {
  return pipeline::json_line({{"architecture", "clipseg"},
                              {"image_size", *files_.towers.config.preprocessing.input_size},
                              {"refined", files_.config.refined}});
}

std::string ClipSegModel::facts() const {
  const models::ModelConfig& clip = files_.towers.config;
  return facts_json({.architecture = "clipseg",
                     .image_size = *clip.preprocessing.input_size,
                     .depth = clip.vit.depth,
                     .heads = clip.vit.num_heads,
                     .dim = clip.vit.embed_dim,
                     .precision = precision_});
}

std::unique_ptr<Request> ClipSegModel::tensors() const {
  const models::ModelConfig& clip = files_.towers.config;
  const int64_t side = (*clip.preprocessing.input_size)[0] / clip.vit.patch_size[0];
  return std::make_unique<ClipSegTokens>(
      Shape{std::ssize(files_.config.layers), 1 + side * side, files_.config.vision_dim});
}

void ClipSegModel::warm_up() const {
  const auto encoding = encode(image::make_image(64, 64, 3));
  logits(*encoding, embed({kNominalText}));
}

std::shared_ptr<const ImageEncoding> ClipSegModel::encode(const image::ImageView& photo) const {
  auto encoding = std::make_shared<ClipSegEncoding>();
  encoding->width = photo.width();
  encoding->height = photo.height();
  encoding->tokens =
      towers_.images()
          .embed({&photo, 1}, {.tokens = infer::Tokens::all, .layers = files_.config.layers, .final_norm = false})
          .view({1, std::ssize(files_.config.layers), -1, files_.config.vision_dim});
  return encoding;
}

Tensor ClipSegModel::embed(const std::vector<std::string>& texts, const ProgressCallback& progress) const {
  return towers_.embed_texts(texts, false, nullptr, progress);
}

Tensor ClipSegModel::logits(const ImageEncoding& encoding, const Tensor& text) const {
  return session_->run({{"tokens", static_cast<const ClipSegEncoding&>(encoding).tokens}, {"text", text}})[0]
      .tensor.squeeze(0);
}

Family clipseg_family() { return {.name = "clipseg", .recognises = models::is_clipseg, .load = load_as<ClipSegModel>}; }

}  // namespace vitrail::tasks
