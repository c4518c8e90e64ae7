// SPDX-License-Identifier: Apache-2.0
#include "vitrail/tasks/matte/matte_model.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "vitrail/base/error.h"
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
    : NetworkModel(files, options, "a matting model", models::open_vitmatte, models::load_vitmatte),
      pixels_(with_trimap(net().config().preprocessing)) {}

// The output has the name and the axes of transformers, [B, 1, H, W].
infer::NamedTensors MatteModel::forward(const infer::NamedTensors& inputs) const {
  return {{"alphas", net().forward(inputs[0].tensor).unsqueeze(1)}};
}

std::optional<Network> MatteModel::network() const {
  std::optional<Network> network = NetworkModel::network();
  network->pixels = &pixels_;
  return network;
}

Shape MatteModel::nominal_input() const { return {1, 4, kNominalSide, kNominalSide}; }

// A photo alone has no trimap.
Tensor MatteModel::prepared(const image::ImageView& photo) const {
  return prepared(photo, unknown_trimap(photo.width(), photo.height()));
}

std::string MatteModel::config() const {
  return pipeline::json_line({{"architecture", "vitmatte"}, {"size_divisor", net().config().size_divisor}});
}

std::string MatteModel::facts() const {
  const models::SamEncoderConfig& vit = net().config().backbone;
  return pipeline::json_line({{"architecture", "vitmatte"},
                              {"depth", vit.blocks.size()},
                              {"heads", vit.num_heads},
                              {"dim", vit.dim},
                              {"classes", 0},
                              {"texts", false},
                              {"segments", false},
                              {"precision", kernels::name_of(precision())}});
}

std::unique_ptr<Request> MatteModel::tensors() const { return std::make_unique<NoMatteTensor>(); }

void MatteModel::warm_up() const {
  alpha(image::make_image(kNominalSide, kNominalSide, 3), unknown_trimap(kNominalSide, kNominalSide));
}

Tensor MatteModel::prepared(const image::ImageView& photo, const image::Image& trimap) const {
  const auto [height, width] = models::padded_for_matting(net().config(), photo.height(), photo.width());
  const Tensor pixels = image::apply(photo, transform());  // [3, H, W]
  const Tensor input = Tensor::zeros({1, 4, height, width});
  const auto factor = static_cast<float>(net().config().preprocessing.rescale_factor);
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
  const Tensor alphas = run_session(prepared(photo, trimap))[0].tensor.squeeze(0).squeeze(0);
  return alphas.narrow(0, 0, photo.height).narrow(1, 0, photo.width).contiguous();
}

Family matte_family() { return {.name = "matte", .recognises = models::is_vitmatte, .load = load_as<MatteModel>}; }

}  // namespace vitrail::tasks
