// SPDX-License-Identifier: Apache-2.0
// Each struct of options with one field set: compiles without a warning under -Wall -Wextra -Werror only if every other
// field has a default.
#include <vitrail/autograd/engine.h>
#include <vitrail/data/loader/loader.h>
#include <vitrail/nn/attention.h>
#include <vitrail/nn/mimetic.h>
#include <vitrail/ops/loss.h>
#include <vitrail/optim/ema.h>
#include <vitrail/optim/optimizer.h>
#include <vitrail/optim/parameter_groups.h>
#include <vitrail/optim/schedule.h>
#include <vitrail/vitrail.h>

#include <tuple>

auto options_with_one_field() {
  using namespace vitrail;
  return std::tuple{
      ModelOptions{.threads = 2},
      ModelOptions{.labels = "labels.txt"},
      AttentionMapOptions{.rollout = true},
      Prediction{.index = 1},
      autograd::BackwardOptions{.keep_graph = true},
      data::AugmentOptions{.flip = data::Flip::random},
      data::DatasetOptions{.num_classes = 10},
      data::LoaderOptions{.threads = 2},
      data::MixupOptions{.probability = 0.5},
      image::DecodeOptions{.apply_exif = true},
      image::EvalTransform{.crop_pct = 1},
      image::ProcessorSteps{.rescale = 1},
      infer::FunctionOptions{.threads = 2},
      infer::FeatureOptions{.l2_normalize = true},
      infer::Request{.layer = 3},
      infer::SessionOptions{.threads = 2},
      models::LoadOptions{.config = "vit_tiny_patch16_224"},
      models::ModelConfig{.architecture = "vit"},
      models::Preprocessing{.crop_mode = "squash"},
      models::PreprocessingOverrides{.crop_pct = 1},
      models::VisionTransformer::IntermediateOptions{.layer = 3},
      models::VisionTransformerConfig{.depth = 3},
      nn::AttentionOptions{.need_weights = true},
      nn::MimeticOptions{.qk_noise = 0.5},
      ops::BceOptions{.label_smoothing = 0.1},
      ops::DistillationOptions{.hard = true},
      optim::EmaOptions{.decay = 0.99},
      optim::GroupOptions{.weight_decay = 0},
      optim::OptimizerOptions{.kind = "sgd"},
      optim::ScheduleOptions{.rate = 0.1},
      train::Recipe{.epochs = 3},
      train::TrainerCallbacks{.stop = [] { return false; }},
      train::TrainerOptions{.threads = 2},
  };
}
