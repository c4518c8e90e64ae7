// SPDX-License-Identifier: Apache-2.0
#include "vitrail/tasks/matte/matte_model.h"

#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "vitrail/base/error.h"
#include "vitrail/base/parallel.h"
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

}  // namespace

MatteModel::MatteModel(const models::ModelFiles& files, const OpenOptions& options)
    : precision_(require_no_others(options, "a matting model").model.precision.value_or(kernels::Precision::fp32)),
      model_(models::load_vitmatte(files)),
      transform_(infer::transform_of(model_.config().preprocessing, files.path.string())) {
  session_ = std::make_unique<infer::FunctionSession>(
      model_,
      [this](const infer::NamedTensors& in) -> infer::NamedTensors {
        return {{"alpha", model_.forward(in[0].tensor)}};
      },
      infer::FunctionOptions{
          .threads = options.model.threads, .precision = precision_, .excluded_layers = models::outer_layers(model_)});
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
  constexpr int64_t kSide = 512;  // that of the published models
  alpha(image::make_image(kSide, kSide, 3), image::make_image(kSide, kSide, 1));
}

Tensor MatteModel::alpha(const image::Image& photo, const image::Image& trimap) const {
  const auto [height, width] = models::padded_for_matting(model_.config(), photo.height, photo.width);
  const Tensor pixels = image::apply(photo, transform_);  // [3, H, W]
  const Tensor input = Tensor::zeros({1, 4, height, width});
  const auto factor = static_cast<float>(model_.config().preprocessing.rescale_factor);
  for (int64_t y = 0; y < photo.height; ++y) {
    const auto row = [&, width = width, height = height](int64_t channel) {
      return input.data<float>() + (channel * height + y) * width;
    };
    for (int64_t channel = 0; channel < 3; ++channel) {
      std::copy_n(pixels.data<float>() + (channel * photo.height + y) * photo.width, photo.width, row(channel));
    }
    for (int64_t x = 0; x < photo.width; ++x) row(3)[x] = factor * static_cast<float>(trimap.row(y)[x]);
  }
  const Tensor logits = session_->run({{"images", input}})[0].tensor;
  const Tensor result = Tensor::empty({photo.height, photo.width});
  parallel_for(0, photo.height, 16, [&, width = width](int64_t first, int64_t last) {
    for (int64_t y = first; y < last; ++y) {
      for (int64_t x = 0; x < photo.width; ++x)
        result.data<float>()[y * photo.width + x] = 1 / (1 + std::exp(-logits.data<float>()[y * width + x]));
    }
  });
  return result;
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
