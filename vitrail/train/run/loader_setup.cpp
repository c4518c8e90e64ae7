// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "vitrail/train/run/loader_setup_internal.h"

namespace vitrail::train {

data::LoaderOptions training_options(const Recipe& recipe, const RunData& data, const image::EvalTransform& transform,
                                     int64_t channels, int threads, const ProcessGroup& group) {
  // The first of the last `epochs` epochs; −1 for none.
  auto first_of_last = [&](double epochs) {
    return epochs > 0 ? std::max<int64_t>(0, recipe.epochs - std::llround(std::ceil(epochs))) : -1;
  };
  data::LoaderOptions options;
  options.batch_size = recipe.batch_size;
  options.rank = group.rank();
  options.ranks = group.size();
  options.channels = channels;
  options.seed = recipe.seed;
  options.threads = recipe.data.workers > 0 ? static_cast<int>(recipe.data.workers) : std::max(1, threads / 2);
  options.in_flight = recipe.data.in_flight;
  options.repeats = recipe.repeats;
  options.balance = recipe.data.balance;
  options.subset = data.train.samples;
  options.transform = transform;
  options.augment = recipe.augment;
  options.augment->off_epoch = first_of_last(recipe.plain_epochs);
  if (recipe.loss.distillation) {
    options.augment->views = recipe.loss.distillation->views;
    options.augment->view_epochs = recipe.loss.distillation->view_epochs.value_or(-1);
  }
  options.classes = static_cast<int64_t>(data.classes.size());
  options.mix = recipe.mix;
  options.mix.classes = options.classes;
  options.mix.label_smoothing = recipe.loss.label_smoothing;
  options.mix.off_epoch = first_of_last(recipe.unmixed_epochs);
  options.unreadable = recipe.data.unreadable;
  return options;
}

data::Loader evaluation_loader(const Subset& subset, const data::LoaderOptions& training) {
  data::LoaderOptions options = data::evaluation_options(training);
  options.subset = subset.samples;
  if (options.unreadable == data::Unreadable::replace) options.unreadable = data::Unreadable::leave_out;
  return {subset.dataset, options};
}

}  // namespace vitrail::train
