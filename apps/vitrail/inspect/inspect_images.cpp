// SPDX-License-Identifier: Apache-2.0
#include "apps/vitrail/inspect/inspect_images.h"

#include <fmt/core.h>

#include "apps/vitrail/families/family.h"
#include "apps/vitrail/output/output.h"
#include "vitrail/image/decode.h"
#include "vitrail/infer/preprocess.h"
#include "vitrail/models/check_weights.h"
#include "vitrail/models/class_gradients.h"
#include "vitrail/pipeline/class_names.h"

namespace vitrail::app {
namespace {

std::string size_text(const std::array<int64_t, 2>& size) { return fmt::format("{}×{}", size[0], size[1]); }

class InspectedImageModel : public InspectedModel {
 public:
  InspectedImageModel(std::string source, models::ModelConfig config, ValueOptions values)
      : source_(std::move(source)), config_(std::move(config)), values_(std::move(values)) {}
  InspectedImageModel(std::string source, const models::OpenedModel& opened, ValueOptions values)
      : source_(std::move(source)), config_(opened.config), opened_(opened), values_(std::move(values)) {}

  std::string source() const override { return source_; }
  const weights::Checkpoint* checkpoint() const override { return opened_ ? opened_->checkpoint.get() : nullptr; }
  const weights::KeyMap* key_map() const override { return opened_ ? &opened_->key_map : nullptr; }
  void print_summary() const override;
  std::shared_ptr<const nn::Module> build(Device device) const override;
  void trace(const nn::Module& model, ValueListing& listing) const override;
  std::vector<nn::NamedTensor> gradients(const std::string& of_class) const override;
  void print_table(const TableOptions& options, bool quiet) const override;

 private:
  models::VisionTransformer build_transformer(Device device) const;
  Tensor input() const;  // [batch, C, H, W]: random images, or copies of one
  image::DecodeOptions decoding() const { return {.mode = infer::color_mode_of(config_.vit.in_chans)}; }
  Tensor prepared(const image::Image& image) const;  // [1, C, H, W]

  std::string source_;
  models::ModelConfig config_;
  std::optional<models::OpenedModel> opened_;
  ValueOptions values_;
};

void InspectedImageModel::print_summary() const {
  const auto& vit = config_.vit;
  const std::shared_ptr<const nn::Module> shapes = build(Device::meta);
  print_output("architecture  {}\n", escaped(config_.architecture));
  if (opened_) {
    print_output("weights       {} ({}), {} keys\n", escaped(opened_->checkpoint->path()),
                 opened_->checkpoint->format(), opened_->key_map.name());
    const std::string& about = opened_->key_map.about();
    if (!about.empty()) print_output("names         {}\n", escaped(about));
  } else {
    print_output("weights       none\n");
  }
  print_output("input         {} channels, image {}, patch {}\n", vit.in_chans,
               size_text(config_.preprocessing.input_size.value_or(vit.img_size)), size_text(vit.patch_size));
  print_output("model         width {}, depth {}, {} heads, {} {}\n", vit.embed_dim, vit.depth, vit.num_heads,
               vit.num_classes, vit.projection_head ? "features of the projection" : "classes");
  if (const auto& text = config_.text) {
    print_output("text          width {}, depth {}, {} heads, {} tokens of {}\n", text->embed_dim, text->depth,
                 text->num_heads, text->context_length, text->vocab_size);
  }
  print_output("parameters    {}\n", shapes->num_parameters());
  if (opened_) models::check_weights(*opened_);
}

std::shared_ptr<const nn::Module> InspectedImageModel::build(Device device) const {
  return std::make_unique<models::VisionTransformer>(build_transformer(device));
}

models::VisionTransformer InspectedImageModel::build_transformer(Device device) const {
  if (opened_ && device == Device::cpu) return models::build_model(*opened_);
  RandomParams random(0, DType::f32, device);
  return {config_.vit, ParamSource(random)};
}

Tensor InspectedImageModel::input() const {
  if (values_.trace == "random") {
    const auto& size = config_.preprocessing.input_size ? *config_.preprocessing.input_size : config_.vit.img_size;
    return Tensor::randn({values_.batch, config_.vit.in_chans, size[0], size[1]}, 1);
  }
  const Tensor image = prepared(image::read_image(values_.trace, decoding()));
  return image.expand({values_.batch, image.size(1), image.size(2), image.size(3)}).contiguous();
}

Tensor InspectedImageModel::prepared(const image::Image& image) const {
  return image::apply(image, infer::transform_of(config_.preprocessing, source_)).unsqueeze(0);
}

void InspectedImageModel::trace(const nn::Module& model, ValueListing& listing) const {
  const Tensor images = input();
  listing.add("images", images);
  static_cast<const models::VisionTransformer&>(model).forward(images);
}

std::vector<nn::NamedTensor> InspectedImageModel::gradients(const std::string& of_class) const {
  models::require_classifier(config_, source_);
  const int64_t target =
      pipeline::class_index("--gradient", of_class, pipeline::class_names(config_), config_.vit.num_classes);
  models::VisionTransformer model = build_transformer(Device::cpu);
  return models::all_class_gradients(model, input(), target);
}

void InspectedImageModel::print_table(const TableOptions& options, bool quiet) const {
  const models::VisionTransformer model = build_transformer(Device::cpu);
  print_inspect_table({.source = source_,
                       .model = model,
                       .config = config_,
                       .options = options,
                       .image = values_.trace.empty() ? Tensor() : input(),
                       .read = [&](ImageInputs& inputs, size_t i) { return prepared(inputs.read(i, decoding())); },
                       .quiet = quiet});
}

}  // namespace

std::unique_ptr<InspectedModel> inspect_image_model(const NamedModel& model, const ModelOptions& options,
                                                    const ValueOptions& values) {
  const bool named = is_configuration(options.model);
  if (named && !options.config.empty())
    throw CLI::ValidationError("--config", options.model + " is a configuration already; give one of the two");
  if (model.files) return std::make_unique<InspectedImageModel>(options.model, options.open(*model.files), values);
  const std::string config = named ? options.model : options.config;
  for (const auto& [name, value] : {std::pair("--key-map", options.key_map), {"--adapter", options.adapter}})
    if (!value.empty()) throw CLI::ValidationError(name, config + " has no weights");
  return std::make_unique<InspectedImageModel>(config, options.read_config(config), values);
}

}  // namespace vitrail::app
