// SPDX-License-Identifier: Apache-2.0
#include "vitrail/train/objectives/classification/teacher_internal.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "vitrail/base/crc32c_internal.h"
#include "vitrail/base/error.h"
#include "vitrail/base/parallel.h"
#include "vitrail/base/random.h"
#include "vitrail/infer/preprocess.h"
#include "vitrail/models/derived_config_internal.h"
#include "vitrail/models/load.h"
#include "vitrail/nn/positional_encoding.h"
#include "vitrail/train/objectives/classification/head_features_internal.h"
#include "vitrail/train/objectives/classification/teacher_cache_internal.h"
#include "vitrail/train/recipe/recipe.h"

namespace vitrail::train {
namespace {

models::OpenedModel open_teacher(const std::string& path, const std::vector<std::string>& classes) {
  models::OpenedModel opened = models::open_model(path);
  const models::ModelConfig& config = opened.config;
  models::refuse_regression(config, "teacher " + path);
  if (config.vit.num_classes != static_cast<int64_t>(classes.size()))
    throw Error("teacher " + path, str(classes.size(), " classes, as the data has"), str(config.vit.num_classes));
  if (!config.labels.empty() && config.labels != classes) {
    for (size_t i = 0; i < classes.size(); ++i) {
      if (config.labels[i] != classes[i])
        throw Error("teacher " + path, str("class ", i, " to be \"", classes[i], "\""), "\"" + config.labels[i] + "\"");
    }
  }
  return opened;
}

// Returns the matrix [to, from] of bicubic resizing along one axis: its columns are the resized unit vectors.
std::vector<float> resize_matrix(int64_t from, int64_t to) {
  Tensor identity = Tensor::zeros({1, from, from});
  for (int64_t i = 0; i < from; ++i) identity.data<float>()[i * from + i] = 1;
  const Tensor resized = nn::resample_positions(identity, 0, {from, 1}, {to, 1}, {}).contiguous();
  return {resized.data<float>(), resized.data<float>() + to * from};
}

double channel(const std::vector<double>& values, int64_t c) {
  return values.size() == 1 ? values[0] : values[static_cast<size_t>(c)];
}

uint32_t checksum(const models::VisionTransformer& model) {
  uint32_t sum = 0;
  for (const nn::NamedTensor& weight : model.named_parameters()) {
    const Tensor values = weight.tensor.contiguous();
    sum = crc32c(values.raw(), static_cast<size_t>(values.numel()) * size_of(values.dtype()), sum);
  }
  return sum;
}

// That of the logits, or of the features of a model without a head.
int64_t width_of(const models::VisionTransformerConfig& config) {
  return config.num_classes > 0 ? config.num_classes : models::feature_width_of(config);
}

std::string describe(const image::ProcessorSteps& steps) {
  std::string text = str(" processor ", static_cast<int>(steps.resize), " ", steps.size[0], " ", steps.size[1], " ",
                         steps.rescale, " ", steps.resize_floats);
  if (steps.longest_edge) text += str(" longest ", *steps.longest_edge);
  if (steps.crop) text += str(" crop ", (*steps.crop)[0], " ", (*steps.crop)[1]);
  return text;
}

std::string describe(const image::EvalTransform& transform) {
  std::string text = str(transform.size[0], " ", transform.size[1], " ", transform.crop_pct, " ",
                         static_cast<int>(transform.crop_mode), " ", static_cast<int>(transform.interpolation));
  if (transform.fill_color) text += str(" fill ", static_cast<int>(*transform.fill_color));
  for (const double value : transform.mean) text += str(" ", value);
  for (const double value : transform.std) text += str(" ", value);
  if (transform.processor) text += describe(*transform.processor);
  return text;
}

// The fields of a recipe that determine the views, and so the cached logits.  The preprocessing is not part of it
// (preprocessing_).  Neither is the hold-out, because samples keep their index in the dataset.
std::string describe_views(const Recipe& recipe, const TeacherViews& fixed) {
  Recipe views;
  views.data.train = recipe.data.train;
  views.data.train_split = recipe.data.train_split;
  views.data.columns = recipe.data.columns;
  views.data.exif = recipe.data.exif;
  views.seed = recipe.seed;
  views.augment = recipe.augment;
  if (fixed.epochs) {  // these are not applied to views
    views.augment.affine.reset();
    views.augment.policy.clear();
    views.augment.color_jitter.reset();
    views.augment.grayscale = 0;
    views.augment.blur.reset();
    views.augment.solarize.reset();
    views.augment.erasing = {};
  }
  if (views.augment.policy.empty()) {
    views.augment.policy_share = 1;
    views.augment.policy_interpolation.clear();
  }
  views.loss.distillation = DistillationRecipe{.teacher = "", .views = fixed.count};
  return write_recipe(views);
}

}  // namespace

Teacher::Teacher(const std::string& path, const image::EvalTransform& student, const std::vector<std::string>& classes,
                 kernels::Precision precision)
    : Teacher(open_teacher(path, classes), path, student, precision) {}

Teacher::Teacher(const std::string& path, const image::EvalTransform& student)
    : Teacher(models::open_model(path), path, student) {}

Teacher::Teacher(const models::OpenedModel& opened, const std::string& path, const image::EvalTransform& student)
    : Teacher(without_head(models::build_model(opened)), infer::transform_of(opened.config.preprocessing, path),
              student, kernels::Precision::fp32) {}

Teacher::Teacher(const models::OpenedModel& opened, const std::string& path, const image::EvalTransform& student,
                 kernels::Precision precision)
    : Teacher(models::build_model(opened), infer::transform_of(opened.config.preprocessing, path), student, precision) {
}

Teacher::Teacher(models::VisionTransformer model, const image::EvalTransform& own, const image::EvalTransform& student,
                 kernels::Precision precision)
    : size_(model.config().img_size),
      student_size_(student.size),
      width_(width_of(model.config())),
      checksum_(checksum(model)),
      preprocessing_(describe(student) + ", " + describe(own) + (model.config().num_classes == 0 ? ", features" : "")),
      session_(std::move(model), {.threads = num_threads(), .precision = precision}),
      resize_y_(resize_matrix(student_size_[0], size_[0])),
      resize_x_(resize_matrix(student_size_[1], size_[1])) {
  for (int64_t c = 0; c < session_.config().in_chans; ++c) {
    scale_.push_back(static_cast<float>(channel(student.std, c) / channel(own.std, c)));
    shift_.push_back(static_cast<float>((channel(student.mean, c) - channel(own.mean, c)) / channel(own.std, c)));
  }
}

// Resizes one channel of one image, first along x, then along y.  `rows`: scratch [student height, teacher width].
void Teacher::resize(const float* from, float* to, std::vector<float>& rows) const {
  const auto [height, width] = student_size_;
  for (int64_t y = 0; y < height; ++y) {
    for (int64_t x = 0; x < size_[1]; ++x) {
      float sum = 0;
      for (int64_t k = 0; k < width; ++k) sum += resize_x_[static_cast<size_t>(x * width + k)] * from[y * width + k];
      rows[static_cast<size_t>(y * size_[1] + x)] = sum;
    }
  }
  for (int64_t y = 0; y < size_[0]; ++y) {
    float* line = to + y * size_[1];
    std::fill(line, line + size_[1], 0.0f);
    for (int64_t k = 0; k < height; ++k) {
      const float weight = resize_y_[static_cast<size_t>(y * height + k)];
      if (weight == 0) continue;
      for (int64_t x = 0; x < size_[1]; ++x) line[x] += weight * rows[static_cast<size_t>(k * size_[1] + x)];
    }
  }
}

Tensor Teacher::input_of(const Tensor& images) const {
  const int64_t batch = images.size(0), channels = session_.config().in_chans;
  const Shape expected{batch, channels, student_size_[0], student_size_[1]};
  if (images.shape() != expected) throw Error("teacher", str("images ", expected), str(images.shape()));
  const Tensor result = Tensor::empty({batch, channels, size_[0], size_[1]});
  const int64_t source_area = student_size_[0] * student_size_[1], area = size_[0] * size_[1];
  parallel_for(0, batch * channels, 1, [&](int64_t first, int64_t last) {
    std::vector<float> rows(static_cast<size_t>(student_size_[0] * size_[1]));
    for (int64_t plane = first; plane < last; ++plane) {
      const float* from = images.data<float>() + plane * source_area;
      float* to = result.data<float>() + plane * area;
      const auto c = static_cast<size_t>(plane % channels);
      if (size_ == student_size_) {
        std::copy_n(from, area, to);
      } else {
        resize(from, to, rows);
      }
      for (int64_t i = 0; i < area; ++i) to[i] = to[i] * scale_[c] + shift_[c];
    }
  });
  return result;
}

Teacher::~Teacher() = default;

void Teacher::use_cache(const std::filesystem::path& folder, const Recipe& recipe, const TeacherViews& views,
                        const std::string& images) {
  const std::string identity = str(describe_views(recipe, views), ", ", images, ", ", preprocessing_, ", ", checksum_,
                                   ", ", kernels::name_of(session_.precision()));
  std::array<char, 32> name{};
  std::snprintf(name.data(), name.size(), "teacher-%016llx.cache",
                static_cast<unsigned long long>(random_key(identity)));
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) throw Error(str(folder.string(), ": cannot be created: ", error.message()));
  cache_ = std::make_unique<TeacherCache>(folder / name.data(), identity, 2 * views.count, width_);
  mean_for_new_images_ = views.epochs.has_value();
}

// If a row is missing, the teacher runs on the complete batch, so that a resumed run computes the same bits: they can
// depend on the batch size.
Tensor Teacher::logits(const data::Batch& batch) const {
  const Tensor cached = Tensor::empty({batch.images.size(0), width_});
  if (cache_ && mean_for_new_images_ && batch.view < 0 && cache_->read_mean(batch.samples, cached)) return cached;
  if (!cache_ || batch.view < 0) return logits(batch.images);
  if (cache_->read(batch.samples, batch.view, cached)) return cached;
  const Tensor computed = logits(batch.images).to(DType::f32).contiguous();
  cache_->read(batch.samples, batch.view, computed);  // rows in the cache take precedence
  cache_->write(batch.samples, batch.view, computed);
  return computed;
}

Tensor Teacher::logits(const Tensor& images) const { return session_.logits(input_of(images.contiguous())); }

}  // namespace vitrail::train
