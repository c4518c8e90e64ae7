// SPDX-License-Identifier: Apache-2.0
#include "vitrail/explain/run_page.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "vitrail/analysis/token_statistics.h"
#include "vitrail/base/error.h"
#include "vitrail/base/parallel.h"
#include "vitrail/explain/arrays_internal.h"
#include "vitrail/explain/html_internal.h"
#include "vitrail/explain/manifest_internal.h"
#include "vitrail/explain/model_facts_internal.h"
#include "vitrail/explain/model_tree_internal.h"
#include "vitrail/explain/prediction_internal.h"
#include "vitrail/models/logit_lens.h"

namespace vitrail::explain {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kBatch = 32;
constexpr size_t kMaxFlips = 24;  // images that the page lists

// Values of all kept models, for the images that are followed.
struct Course {
  // The attention of the class token to the patches [E, I, L, P], and the norms of the tokens after each block
  // [E, I, L, N].
  Tensor attention, norms;
  // The logit lens [E, I, L]: the probability of the label, and the best class.
  Tensor probability = {}, best = {};
  std::vector<std::vector<int64_t>> predictions = {};  // by kept models: the class of each held-out image
  // Of the last model: its inputs [I, C, H, W], how bytes become inputs, and members of the manifest.
  Tensor inputs = {};
  std::vector<ChannelScale> pixels = {};
  Json model = {}, tree = {}, transform = {};
};

// A kept model, ready for images.
struct OpenModel {
  OpenModel(const KeptWeights& kept, int threads)
      : opened(models::open_model(kept.folder)),
        model(opened, {.threads = threads}),
        vit(models::build_model(opened)) {}
  models::OpenedModel opened;
  Model model;
  models::VisionTransformer vit;
};

// The attention of the class token to the patches, or of all patches without one: the mean over queries and heads.
void copy_attention(const Tensor& weights, int64_t prefix, Tensor to) {
  const int64_t heads = weights.size(1), tokens = weights.size(2), patches = tokens - prefix;
  const int64_t queries = prefix > 0 ? 1 : tokens;
  const Tensor rows = weights.contiguous();
  float* const sums = to.data<float>();
  for (int64_t head = 0; head < heads; ++head)
    for (int64_t query = 0; query < queries; ++query)
      for (int64_t patch = 0; patch < patches; ++patch)
        sums[patch] +=
            rows.data<float>()[(head * tokens + query) * tokens + prefix + patch] / static_cast<float>(heads * queries);
}

Course empty_course(const OpenModel& model, const LabelledImage& image, int64_t epochs, int64_t images) {
  const image::ImageView photo = image.photo;
  const Shape input = model.model.preprocess({&photo, 1}).shape();
  const auto grid = model.vit.grid_of(input[2], input[3]);
  const int64_t depth = model.vit.config().depth, patches = grid[0] * grid[1];
  Course course{.attention = Tensor::zeros({epochs, images, depth, patches}),
                .norms = Tensor::zeros({epochs, images, depth, patches + model.vit.num_prefix_tokens()})};
  if (!is_classifier(model.vit.config())) return course;
  course.probability = Tensor::zeros({epochs, images, depth});
  course.best = Tensor::zeros({epochs, images, depth});
  return course;
}

void follow_lens(const OpenModel& model, const Tensor& input, int64_t label, Tensor probability, Tensor best) {
  const std::vector<Tensor> lens = models::logit_lens(model.vit, input);
  for (size_t block = 0; block < lens.size(); ++block) {
    const auto values = probabilities_of(model.opened.config, lens[block].contiguous());
    const auto largest = std::ranges::max_element(values) - values.begin();
    best.data<float>()[block] = static_cast<float>(largest);
    probability.data<float>()[block] = static_cast<float>(values[static_cast<size_t>(label >= 0 ? label : largest)]);
  }
}

void follow(const OpenModel& model, const LabelledImage& image, int64_t epoch, int64_t index, Course& course) {
  const image::ImageView photo = image.photo;
  const Tensor input = model.model.preprocess({&photo, 1});
  const ComputeTeam team(model.model.session().threads());
  const auto at = [&](const Tensor& of) { return of.select(0, epoch).select(0, index); };
  const std::vector<Tensor> maps = model.vit.attention_maps(input);
  std::vector<int64_t> blocks(maps.size());
  std::iota(blocks.begin(), blocks.end(), 0);
  const std::vector<Tensor> streams = model.vit.intermediates(input, blocks, false);
  for (size_t block = 0; block < maps.size(); ++block) {
    const auto row = static_cast<int64_t>(block);
    copy_attention(maps[block], model.vit.num_prefix_tokens(), at(course.attention).select(0, row));
    std::ranges::copy(analysis::token_norms(streams[block].select(0, 0)),
                      at(course.norms).select(0, row).data<float>());
  }
  if (course.best.defined()) follow_lens(model, input, image.label, at(course.probability), at(course.best));
}

Tensor inputs_of(const OpenModel& model, const std::vector<LabelledImage>& images) {
  std::vector<image::ImageView> photos;
  for (const LabelledImage& image : images) photos.push_back(image.photo);
  return model.model.preprocess(photos);
}

// The class that the model gives to each held-out image.
std::vector<int64_t> predictions_of(const OpenModel& model, const ExplainedRun& run,
                                    const std::function<void(int64_t)>& step) {
  std::vector<int64_t> classes;
  const auto count = std::ssize(run.held_out_labels);
  for (int64_t first = 0; first < count; first += kBatch) {
    const int64_t last = std::min<int64_t>(first + kBatch, count);
    std::vector<LabelledImage> images;
    for (int64_t i = first; i < last; ++i) images.push_back(run.held_out(i));
    const Tensor logits = model.model.session().logits(inputs_of(model, images)).contiguous();
    for (int64_t i = 0; i < last - first; ++i) {
      const float* const row = logits.data<float>() + i * logits.size(1);
      classes.push_back(std::max_element(row, row + logits.size(1)) - row);
    }
    step(last - first);
  }
  return classes;
}

// Images whose prediction changes, those that change most often first.
std::vector<int64_t> flipped(const std::vector<std::vector<int64_t>>& predictions) {
  const auto changes = [&](int64_t image) {
    int64_t count = 0;
    for (size_t epoch = 1; epoch < predictions.size(); ++epoch)
      if (predictions[epoch][static_cast<size_t>(image)] != predictions[epoch - 1][static_cast<size_t>(image)]) ++count;
    return count;
  };
  std::vector<int64_t> images(predictions.front().size());
  std::iota(images.begin(), images.end(), 0);
  std::erase_if(images, [&](int64_t image) { return changes(image) == 0; });
  std::ranges::stable_sort(images, std::greater<>(), changes);
  return images;
}

Json flips_json(const ExplainedRun& run, const std::vector<std::vector<int64_t>>& predictions) {
  constexpr int64_t kThumbnail = 96;
  const std::vector<int64_t>& labels = run.held_out_labels;
  Json steps = Json::array();
  for (size_t epoch = 0; epoch < predictions.size(); ++epoch) {
    int64_t right = 0, gained = 0, lost = 0;
    for (size_t i = 0; i < labels.size(); ++i) {
      const bool now = predictions[epoch][i] == labels[i], before = epoch > 0 && predictions[epoch - 1][i] == labels[i];
      right += now;
      if (epoch > 0) gained += now && !before, lost += before && !now;
    }
    steps.push_back({{"right", right}, {"gained", gained}, {"lost", lost}});
  }
  const std::vector<int64_t> images = flipped(predictions);
  Json rows = Json::array();
  for (size_t i = 0; i < std::min(images.size(), kMaxFlips); ++i) {
    const LabelledImage image = run.held_out(images[i]);
    Json row = image_json(image.photo, image.name, kThumbnail);
    row["label"] = image.label;
    for (const auto& of_epoch : predictions) row["predictions"].push_back(of_epoch[static_cast<size_t>(images[i])]);
    rows.push_back(row);
  }
  return {{"images", labels.size()}, {"changed", images.size()}, {"steps", steps}, {"rows", rows}};
}

Json model_json(const ExplainedRun& run, const OpenModel& model, const Course& course) {
  const models::VisionTransformerConfig& vit = model.vit.config();
  const Tensor& input = course.inputs;
  const std::array<int64_t, 2> grid = model.vit.grid_of(input.size(2), input.size(3));
  return {{"kind", "training"},
          {"name", run.name},
          {"architecture", model.opened.config.architecture},
          {"parameters", model.vit.num_parameters()},
          {"width", vit.embed_dim},
          {"depth", vit.depth},
          {"heads", vit.num_heads},
          {"head_dim", vit.embed_dim / vit.num_heads},
          {"channels", vit.in_chans},
          {"image", {input.size(2), input.size(3)}},
          {"patch", vit.patch_size},
          {"grid", grid},
          {"patches", grid[0] * grid[1]},
          {"tokens", course.norms.size(3)},
          {"prefix", model.vit.num_prefix_tokens()},
          {"special", special_tokens(vit)},
          {"classes", course.best.defined() ? vit.num_classes : 0}};
}

Json training_json(const ExplainedRun& run, const Course& course) {
  Json training{{"objective", run.objective}, {"curves", Json::array()}};
  for (const auto& [event, quantity, epochs, values] : run.curves)
    training["curves"].push_back({{"event", event}, {"quantity", quantity}, {"epochs", epochs}, {"values", values}});
  for (const KeptWeights& model : run.models) training["epochs"].push_back(model.epoch);
  for (const LabelledImage& image : run.images) {
    Json row = image_json(image.photo, image.name);
    row["label"] = image.label;
    training["images"].push_back(row);
  }
  if (!course.predictions.empty()) training["flips"] = flips_json(run, course.predictions);
  return training;
}

// Opens one model at a time.
Course follow_all(const ExplainedRun& run, const ProgressCallback& progress) {
  const auto epochs = std::ssize(run.models), images = std::ssize(run.images);
  int64_t done = 0;
  const auto step = [&](int64_t count) {
    done += count;
    if (progress) progress(done, epochs * (images + std::ssize(run.held_out_labels)));
  };
  Course course;
  for (int64_t epoch = 0; epoch < epochs; ++epoch) {
    const KeptWeights& kept = run.models[static_cast<size_t>(epoch)];
    const OpenModel model(kept, run.threads);
    Course empty = empty_course(model, run.images.front(), epochs, images);
    if (epoch == 0) course = empty;
    if (course.norms.shape() != empty.norms.shape() || course.best.defined() != empty.best.defined())
      throw Error(kept.folder.string(), "blocks, tokens and classes as the first kept model", "others");
    for (int64_t i = 0; i < images; ++i) {
      follow(model, run.images[static_cast<size_t>(i)], epoch, i, course);
      step(1);
    }
    if (course.best.defined() && !run.held_out_labels.empty())
      course.predictions.push_back(predictions_of(model, run, step));
    if (epoch + 1 < epochs) continue;
    const image::EvalTransform& transform = model.model.transform();
    course.inputs = inputs_of(model, run.images);
    course.pixels = pixel_scales(transform, course.inputs.size(1));
    course.transform = {{"mean", transform.mean}, {"std", transform.std}};
    course.model = model_json(run, model, course);
    add_model_tree(model.vit, course.tree);
  }
  return course;
}

}  // namespace

LearningPage explain_run(const ExplainedRun& run, const ExplainOptions& options, const ProgressCallback& progress) {
  if (run.models.empty()) throw Error(run.name, "kept models", "none");
  if (run.images.empty()) throw Error(run.name, "images to follow", "none");
  const Course course = follow_all(run, progress);
  Json manifest = page_manifest(options);
  manifest["model"] = course.model;
  manifest["image"] = course.transform;
  manifest.update(course.tree);
  manifest["training"] = training_json(run, course);
  manifest["classes"] = Json::object();
  for (size_t i = 0; i < run.classes.size(); ++i) manifest["classes"][std::to_string(i)] = run.classes[i];
  Arrays arrays;
  if (!arrays.add_bytes("training.images", course.inputs, course.pixels))
    arrays.add("training.images", course.inputs, Encoding::f16);
  arrays.add("training.attention", course.attention, options.detail == Detail::small ? Encoding::i8 : Encoding::f16);
  arrays.add("training.norms", course.norms, options.detail == Detail::small ? Encoding::f16 : Encoding::f32);
  if (course.best.defined()) {
    arrays.add("training.lens.probability", course.probability, Encoding::f32);
    arrays.add("training.lens.class", course.best, Encoding::f32);
  }
  LearningPage page;
  finish_page(run.name, manifest, Json::array(), Json::object(), arrays, page);
  return page;
}

}  // namespace vitrail::explain
