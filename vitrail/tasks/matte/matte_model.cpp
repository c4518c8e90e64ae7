// SPDX-License-Identifier: Apache-2.0
#include "vitrail/tasks/matte/matte_model.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "vitrail/base/error.h"
#include "vitrail/infer/preprocess.h"
#include "vitrail/models/dense/outer_layers.h"
#include "vitrail/pipeline/prediction_json_internal.h"

namespace vitrail::tasks {
namespace {

// A request for tensors has images alone.
class NoMatteTensor : public Request {
 public:
  void compute(Item& /*item*/, const ImageEncoding* /*encoding*/, const ProgressCallback& /*progress*/) const override {
    throw Error("images", "a trimap beside each, which the route /v1/matte takes", "none");
  }
  std::vector<Output> outputs() const override { return {{"alpha", {}}}; }
  std::string json(const Item& item) const override { return failure_json(item.name, "alpha is an array"); }
};

constexpr int64_t kNominalSide = 512;  // that of the published models

// A trimap is rescaled as its image, and not normalised.
models::Preprocessing with_trimap(models::Preprocessing pixels) {
  for (const auto& [values, value] : {std::pair{&pixels.mean, 0.0}, {&pixels.std, 1.0}}) {
    if (!*values) continue;
    if ((*values)->size() == 1) (*values)->resize(3, (*values)->front());
    (*values)->push_back(value);
  }
  return pixels;
}

image::Image unknown_trimap(int64_t width, int64_t height) {
  image::Image trimap = image::make_image(width, height, 1);
  std::ranges::fill(trimap.pixels, uint8_t{128});
  return trimap;
}

}  // namespace

MatteModel::MatteModel(const models::ModelFiles& files, const OpenOptions& options)
    : precision_(require_no_others(options, "a matting model").model.precision.value_or(kernels::Precision::fp32)),
      files_(models::open_vitmatte(files)),
      model_(models::load_vitmatte(files_)),
      transform_(infer::transform_of(model_.config().preprocessing, files.path.string())),
      pixels_(with_trimap(model_.config().preprocessing)) {
  files_.checkpoint.reset();  // the weights are in the model
  session_ = std::make_unique<infer::FunctionSession>(
      model_, [this](const infer::NamedTensors& in) { return forward(in); },
      infer::FunctionOptions{
          .threads = options.model.threads, .precision = precision_, .excluded_layers = models::outer_layers(model_)});
}

// The output has the name and the axes of transformers, [B, 1, H, W].
infer::NamedTensors MatteModel::forward(const infer::NamedTensors& inputs) const {
  return {{"alphas", model_.forward(inputs[0].tensor).unsqueeze(1)}};
}

// All alpha of a photo is unknown, which has no trimap.
std::optional<Network> MatteModel::network() const {
  return Network{.module = model_,
                 .forward = [this](const infer::NamedTensors& in) { return forward(in); },
                 .session = *session_,
                 .inputs = {{"images", Tensor::empty({1, 4, kNominalSide, kNominalSide}, DType::f32, Device::meta)}},
                 .any_size = true,
                 .pixels = &pixels_,
                 .inputs_of = [this](const image::ImageView& photo) -> infer::NamedTensors {
                   return {{"images", prepared(photo, unknown_trimap(photo.width(), photo.height()))}};
                 },
                 .key_map = files_.key_map,
                 .config_json = files_.config_json,
                 .preprocessor_json = files_.preprocessor_json};
}

std::string MatteModel::config() const {
  return pipeline::json_line({{"architecture", "vitmatte"}, {"size_divisor", model_.config().size_divisor}});
}

std::string MatteModel::facts() const {
  const models::SamEncoderConfig& vit = model_.config().backbone;
  return pipeline::json_line({{"architecture", "vitmatte"},
                              {"depth", vit.blocks.size()},
                              {"heads", vit.num_heads},
                              {"dim", vit.dim},
                              {"classes", 0},
                              {"texts", false},
                              {"segments", false},
                              {"precision", kernels::name_of(precision_)}});
}

std::unique_ptr<Request> MatteModel::tensors() const { return std::make_unique<NoMatteTensor>(); }

void MatteModel::warm_up() const {
  alpha(image::make_image(kNominalSide, kNominalSide, 3), unknown_trimap(kNominalSide, kNominalSide));
}

Tensor MatteModel::prepared(const image::ImageView& photo, const image::Image& trimap) const {
  const auto [height, width] = models::padded_for_matting(model_.config(), photo.height(), photo.width());
  const Tensor pixels = image::apply(photo, transform_);  // [3, H, W]
  const Tensor input = Tensor::zeros({1, 4, height, width});
  const auto factor = static_cast<float>(model_.config().preprocessing.rescale_factor);
  for (int64_t y = 0; y < photo.height(); ++y) {
    const auto row = [&, width = width, height = height](int64_t channel) {
      return input.data<float>() + (channel * height + y) * width;
    };
    for (int64_t channel = 0; channel < 3; ++channel) {
      std::copy_n(pixels.data<float>() + (channel * photo.height() + y) * photo.width(), photo.width(), row(channel));
    }
    for (int64_t x = 0; x < photo.width(); ++x) row(3)[x] = factor * static_cast<float>(trimap.row(y)[x]);
  }
  return input;
}

Tensor MatteModel::alpha(const image::Image& photo, const image::Image& trimap) const {
  const Tensor alphas = session_->run({{"images", prepared(photo, trimap)}})[0].tensor.squeeze(0).squeeze(0);
  return alphas.narrow(0, 0, photo.height).narrow(1, 0, photo.width).contiguous();
}

Family matte_family() {
  return {.name = "matte",
          .has_architecture = [](const std::string& /*name*/) { return false; },
          .recognises = models::is_vitmatte,
          .load = [](const models::ModelFiles& files, const OpenOptions& options) -> std::unique_ptr<LoadedModel> {
            return std::make_unique<MatteModel>(files, options);
          }};
}

bool is_matte_model(const LoadedModel& model) { return dynamic_cast<const MatteModel*>(&model) != nullptr; }

const MatteModel& matte_model(const LoadedModel& model) { return dynamic_cast<const MatteModel&>(model); }

}  // namespace vitrail::tasks
