// SPDX-License-Identifier: Apache-2.0
#include "apps/vitrail/inspect/inspect_values.h"

#include "vitrail/image/decode.h"
#include "vitrail/infer/preprocess.h"
#include "vitrail/nn/trace.h"

namespace vitrail::app {
namespace {

// [batch, C, H, W]: random images, or copies of one.
Tensor trace_input(const ValueOptions& options, const InspectedModel& inspected) {
  const models::ModelConfig& config = inspected.config;
  if (options.trace == "random") {
    const auto& size = config.preprocessing.input_size ? *config.preprocessing.input_size : config.vit.img_size;
    return Tensor::randn({options.batch, config.vit.in_chans, size[0], size[1]}, 1);
  }
  const auto transform = infer::transform_of(config.preprocessing, inspected.source);
  const image::DecodeOptions decode{.mode = infer::color_mode_of(config.vit.in_chans)};
  const Tensor image = image::apply(image::read_image(options.trace, decode), transform);
  return image.unsqueeze(0).expand({options.batch, image.size(0), image.size(1), image.size(2)}).contiguous();
}

}  // namespace

void offer_weights(const nn::Module& model, const weights::Checkpoint* checkpoint, ValueListing& listing) {
  if (listing.prints_rows()) return;
  for (const nn::NamedTensor& parameter : model.named_parameters()) listing.offer(parameter.name, parameter.tensor);
  if (listing.complete() || !checkpoint) return;
  for (const weights::TensorInfo& info : checkpoint->tensors()) {
    if (info.unsupported_dtype.empty()) listing.offer(info.name, checkpoint->tensor(info.name));
  }
}

std::string expected_names(bool traced) {
  return traced ? "a name that --trace or --keys lists"
                : "a parameter of the model, or --trace IMAGE or --trace random for a value of the forward pass";
}

models::VisionTransformer InspectedModel::build(Device device) const {
  if (opened && device == Device::cpu) return models::build_model(*opened);
  RandomParams random(0, DType::f32, device);
  return models::VisionTransformer(config.vit, ParamSource(random));
}

void print_values(const ValueOptions& options, const InspectedModel& inspected) {
  const models::VisionTransformer model = inspected.build(Device::cpu);
  ValueListing listing(options.slices, inspected.opened ? &inspected.opened->key_map : nullptr);
  offer_weights(model, inspected.opened ? inspected.opened->checkpoint.get() : nullptr, listing);
  const bool forward = !options.trace.empty() && (listing.prints_rows() || !listing.complete());
  if (forward) {
    const Tensor images = trace_input(options, inspected);
    const nn::TraceScope scope([&](const std::string& name, const Tensor& tensor) { listing.add(name, tensor); });
    listing.add("images", images);
    model.forward(images);
  }
  listing.finish(expected_names(forward));
}

}  // namespace vitrail::app
