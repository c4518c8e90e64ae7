// SPDX-License-Identifier: Apache-2.0
#pragma once
// The base of models that are one network of images.
#include <algorithm>
#include <functional>
#include <memory>
#include <optional>

#include "vitrail/image/transform.h"
#include "vitrail/infer/function_session.h"
#include "vitrail/infer/preprocess.h"
#include "vitrail/models/dense/outer_layers.h"
#include "vitrail/models/int8_config.h"
#include "vitrail/tasks/loaded_model.h"

namespace vitrail::tasks {

// Base: LoadedModel, or an interface of several models.  Net: an nn::Module whose config() has the preprocessing.
// Config: that of its models::ConfiguredFiles.
template <class Base, class Net, class Config>
class NetworkModel : public Base {
 public:
  using Files = models::ConfiguredFiles<Config>;

  kernels::Precision precision() const override { return precision_; }

  std::optional<Network> network() const override {
    return Network{.module = net(),
                   .calibrated = model_.get(),
                   .forward = [this](const infer::NamedTensors& in) { return forward(in); },
                   .session = session_,
                   .inputs = {{"images", Tensor::empty(nominal_input(), DType::f32, Device::meta)}},
                   .any_size = true,
                   .pixels = &net().config().preprocessing,
                   .inputs_of = [this](const image::ImageView& photo) -> infer::NamedTensors {
                     return {{"images", prepared(photo)}};
                   },
                   .key_map = files_.key_map,
                   .config_json = files_.config_json,
                   .preprocessor_json = files_.preprocessor_json};
  }

 protected:
  // family: as LoadedModel::family(), for errors.  Throws Error for options other than threads and precision.
  NetworkModel(const models::ModelFiles& files, const OpenOptions& options, const char* family,
               const std::function<Files(const models::ModelFiles&)>& open, Net (*load)(const Files&))
      : files_(open(files)),
        int8_(models::read_int8_config(files_.config_json, files.path.string())),
        precision_(require_no_others(options, family)
                       .model.precision.value_or(int8_ ? kernels::Precision::int8 : kernels::Precision::fp32)),
        model_(std::make_unique<Net>(load(with_int8_weights()))),
        transform_(infer::transform_of(net().config().preprocessing, files.path.string())),
        session_(*model_, [this](const infer::NamedTensors& in) { return forward(in); },
                 {.threads = options.model.threads, .precision = precision_, .excluded_layers = excluded_layers()}) {
    files_.checkpoint.reset();  // the weights are in the model
  }

  virtual infer::NamedTensors forward(const infer::NamedTensors& inputs) const = 0;
  virtual Shape nominal_input() const = 0;                           // [1, C, H, W]
  virtual Tensor prepared(const image::ImageView& photo) const = 0;  // [1, C, H, W]

  const Net& net() const { return *model_; }
  const image::EvalTransform& transform() const { return transform_; }
  infer::NamedTensors run_session(const Tensor& images) const { return session_.run({{"images", images}}); }

 private:
  // A session in int8 packs the values of an int8 file as they are.
  const Files& with_int8_weights() {
    if (int8_ && precision_ == kernels::Precision::int8) files_.int8_weights = weights::Int8Weights::keep;
    return files_;
  }
  std::vector<std::string> excluded_layers() const {
    std::vector<std::string> layers = models::outer_layers(*model_);
    if (int8_) std::ranges::copy(int8_->excluded, std::back_inserter(layers));
    return layers;
  }

  Files files_;
  std::optional<models::Int8Config> int8_;
  kernels::Precision precision_;
  std::unique_ptr<Net> model_;  // writable through a const object, for calibration
  image::EvalTransform transform_;
  infer::FunctionSession session_;
};

}  // namespace vitrail::tasks
