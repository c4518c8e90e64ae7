#include "vitrail/train/teacher.h"

#include "vitrail/autograd/variable.h"
#include "vitrail/base/error.h"
#include "vitrail/base/parallel.h"
#include "vitrail/infer/preprocess.h"
#include "vitrail/models/load.h"
#include "vitrail/nn/positional_encoding.h"
#include "vitrail/train/recipe.h"

namespace vitrail::train {
namespace {

models::OpenedModel open_teacher(const std::string& path, const std::vector<std::string>& classes) {
  models::OpenedModel opened = models::open_model(expand_path(path));
  const models::ModelConfig& config = opened.config;
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

// The matrix [to, from] that resizes a line: what it makes of each unit vector.
std::vector<float> line_resize(int64_t from, int64_t to) {
  Tensor identity = Tensor::zeros({1, from, from});
  for (int64_t i = 0; i < from; ++i) identity.data<float>()[i * from + i] = 1;
  const Tensor resized = nn::resample_positions(identity, 0, {from, 1}, {to, 1}, {}).contiguous();
  return {resized.data<float>(), resized.data<float>() + to * from};
}

double channel(const std::vector<double>& values, int64_t c) {
  return values.size() == 1 ? values[0] : values[static_cast<size_t>(c)];
}

}  // namespace

Teacher::Teacher(const std::string& path, const image::EvalTransform& student, const std::vector<std::string>& classes)
    : Teacher(open_teacher(path, classes), path, student) {}

Teacher::Teacher(const models::OpenedModel& opened, const std::string& path, const image::EvalTransform& student)
    : model_(models::build_model(opened)), size_(opened.config.vit.img_size), classes_(opened.config.vit.num_classes) {
  const image::EvalTransform own = infer::transform_of(opened.config.preprocessing, path);
  for (int64_t c = 0; c < opened.config.vit.in_chans; ++c) {
    scale_.push_back(static_cast<float>(channel(student.std, c) / channel(own.std, c)));
    shift_.push_back(static_cast<float>((channel(student.mean, c) - channel(own.mean, c)) / channel(own.std, c)));
  }
}

Tensor Teacher::input_of(const Tensor& images) const {
  const int64_t channels = images.size(1), height = images.size(2), width = images.size(3);
  if (channels != static_cast<int64_t>(scale_.size()))
    throw Error("teacher", str("pictures of ", scale_.size(), " channels"), str(channels));
  const Tensor result = Tensor::empty({images.size(0), channels, size_[0], size_[1]});
  const bool same_size = height == size_[0] && width == size_[1];
  const std::vector<float> down = line_resize(height, size_[0]), across = line_resize(width, size_[1]);
  const float* source = images.data<float>();
  float* target = result.data<float>();
  parallel_for(0, images.size(0) * channels, 1, [&](int64_t first, int64_t last) {
    std::vector<float> rows(static_cast<size_t>(height * size_[1]));  // resized along x
    for (int64_t plane = first; plane < last; ++plane) {
      const float* from = source + plane * height * width;
      float* to = target + plane * size_[0] * size_[1];
      const float scale = scale_[static_cast<size_t>(plane % channels)],
                  shift = shift_[static_cast<size_t>(plane % channels)];
      if (same_size) {
        for (int64_t i = 0; i < height * width; ++i) to[i] = from[i] * scale + shift;
        continue;
      }
      for (int64_t y = 0; y < height; ++y) {
        for (int64_t x = 0; x < size_[1]; ++x) {
          float sum = 0;
          for (int64_t k = 0; k < width; ++k) sum += across[static_cast<size_t>(x * width + k)] * from[y * width + k];
          rows[static_cast<size_t>(y * size_[1] + x)] = sum * scale + shift;
        }
      }
      for (int64_t y = 0; y < size_[0]; ++y) {
        float* line = to + y * size_[1];
        std::fill(line, line + size_[1], 0.0f);
        for (int64_t k = 0; k < height; ++k) {
          const float weight = down[static_cast<size_t>(y * height + k)];
          if (weight == 0) continue;
          for (int64_t x = 0; x < size_[1]; ++x) line[x] += weight * rows[static_cast<size_t>(k * size_[1] + x)];
        }
      }
    }
  });
  return result;
}

void Teacher::remember(const std::filesystem::path& file, const Recipe& recipe) {
  Recipe told = recipe;  // without what may change when a run is resumed and decides nothing
  told.checkpoint = {};
  told.data.workers = told.data.in_flight = told.data.keep_decoded_mb = told.log_every = 1;
  cache_ = std::make_unique<TeacherCache>(file, write_recipe(told), 2 * recipe.loss.distillation->views, classes_);
}

// The whole batch goes through the teacher where a row is missing: rows come out the same in the same batch, and that
// is what a run that is killed and resumed asks for.
Tensor Teacher::logits(const data::Batch& batch) const {
  if (!cache_ || batch.view < 0) return logits(batch.images);
  const Tensor known = Tensor::empty({batch.images.size(0), classes_});
  if (cache_->read(batch.samples, batch.view, known)) return known;
  const Tensor said = logits(batch.images).to(DType::f32).contiguous();
  cache_->read(batch.samples, batch.view, said);
  cache_->write(batch.samples, batch.view, said);
  return said;
}

Tensor Teacher::logits(const Tensor& images) const {
  const autograd::NoGrad no_grad;
  return model_.forward(input_of(images.contiguous()));
}

}  // namespace vitrail::train
