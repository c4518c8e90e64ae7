// SPDX-License-Identifier: Apache-2.0
#include "apps/vitrail/families/model_options.h"
#include "apps/vitrail/families/network_family.h"
#include "apps/vitrail/output/output.h"
#include "apps/vitrail/output/value_listing.h"
#include "vitrail/image/decode.h"

namespace vitrail::app {
namespace {

Tensor repeated(const Tensor& input, int64_t batch) {
  Shape shape = input.shape();
  shape[0] = batch;
  return input.expand(shape).contiguous();
}

class InspectedNetwork : public InspectedModel {
 public:
  InspectedNetwork(const NamedModel& named, const ModelOptions& options, ValueOptions values)
      : named_(named),
        values_(std::move(values)),
        model_(tasks::open_model(*named.files, {.model = {.precision = kernels::Precision::fp32}})),
        network_(network_of(*model_, named.name)),
        checkpoint_(named.files->checkpoint()) {
    refuse_model_options(options, model_->family());
  }

  std::string source() const override { return named_.name; }
  const weights::Checkpoint* checkpoint() const override { return checkpoint_.get(); }
  const weights::KeyMap* key_map() const override { return &network_.key_map; }
  // The loaded one, on any device.
  std::shared_ptr<const nn::Module> build(Device /*device*/) const override { return {model_, &network_.module}; }
  void print_summary() const override;
  void trace(const nn::Module& model, ValueListing& listing) const override;

 private:
  infer::NamedTensors inputs() const;

  const NamedModel& named_;
  ValueOptions values_;
  std::shared_ptr<const tasks::LoadedModel> model_;
  tasks::Network network_;
  std::shared_ptr<const weights::Checkpoint> checkpoint_;
};

void InspectedNetwork::print_summary() const {
  const auto facts = nlohmann::json::parse(model_->facts());
  print_output("architecture  {}\n", escaped(facts.at("architecture").get<std::string>()));
  print_output("weights       {} ({}), {} keys\n", escaped(checkpoint_->path()), checkpoint_->format(),
               network_.key_map.name());
  for (const nn::NamedTensor& input : network_.inputs)
    print_output("input         {} {}\n", input.name, input.tensor.shape().to_string());
  for (const nn::NamedTensor& output : network_.forward(network_.inputs))
    print_output("output        {} {}\n", output.name, output.tensor.shape().to_string());
  if (facts.contains("depth"))
    print_output("backbone      width {}, depth {}, {} heads\n", facts["dim"].dump(), facts["depth"].dump(),
                 facts["heads"].dump());
  print_output("parameters    {}\n", network_.module.num_parameters());
}

infer::NamedTensors InspectedNetwork::inputs() const {
  infer::NamedTensors inputs = network_.inputs;
  if (values_.trace != "random")
    inputs = network_.inputs_of(image::read_image(values_.trace, {.mode = model_->color_mode()}));
  for (auto& [name, tensor] : inputs) {
    tensor = repeated(tensor, values_.batch);
    if (values_.trace == "random") tensor = Tensor::randn(tensor.shape(), 1);
  }
  return inputs;
}

void InspectedNetwork::trace(const nn::Module& /*model*/, ValueListing& listing) const {
  const infer::NamedTensors given = inputs();
  for (const auto& [name, tensor] : given) listing.add(name, tensor);
  for (const auto& [name, tensor] : network_.forward(given)) listing.add(name, tensor);
}

}  // namespace

std::unique_ptr<InspectedModel> inspect_network(const NamedModel& model, const ModelOptions& options,
                                                const ValueOptions& values) {
  return std::make_unique<InspectedNetwork>(model, options, values);
}

}  // namespace vitrail::app
