// SPDX-License-Identifier: Apache-2.0
#pragma once
// The teacher of knowledge distillation (Hinton et al. 2015; Touvron et al. 2021, DeiT): a trained model whose logits
// the student learns.
#include <array>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "vitrail/data/loader/loader.h"
#include "vitrail/image/transform.h"
#include "vitrail/infer/session.h"
#include "vitrail/models/load.h"
#include "vitrail/train/recipe/recipe.h"

namespace vitrail::train {

class TeacherCache;

// The fixed augmented views of an image, whose logits a cache has: data::AugmentOptions::views and view_epochs.
struct TeacherViews {
  int64_t count = 1;
  std::optional<int64_t> epochs{};
};
inline TeacherViews views_of(const DistillationRecipe& recipe) {
  return {.count = recipe.views, .epochs = recipe.view_epochs};
}

class Teacher {
 public:
  // `path`: a model whose configuration has its preprocessing.  `student`: the preprocessing of the student's images.
  // `precision`: of the teacher's forward pass.  Throws Error if its classes are not `classes` in this order, compared
  // by name if the model has names, else by number.
  Teacher(const std::string& path, const image::EvalTransform& student, const std::vector<std::string>& classes,
          kernels::Precision precision = kernels::Precision::fp32);
  // The teacher without its head, whose logits are its pooled features [B, D].
  Teacher(const std::string& path, const image::EvalTransform& student);
  ~Teacher();

  // Caches the logits of each view of an image in a file in `folder`.  The file name is a hash of everything that
  // determines the logits (teacher weights, precision, preprocessing, images, views), so that runs share it exactly if
  // their logits are the same.  images: what identifies the training images (dataset_identity).
  void use_cache(const std::filesystem::path& folder, const Recipe& recipe, const TeacherViews& views,
                 const std::string& images);

  // Returns the target logits [B, classes] f32 for the student's batch.  With a cache, logits of a view come from the
  // cache once they have been computed, and with TeacherViews::epochs images that are no view get the mean over their
  // views.
  Tensor logits(const data::Batch& batch) const;

  int64_t width() const { return width_; }  // the number of logits

  // Computes the logits [B, classes] of the student's images [B, C, H, W].  The images are converted to the teacher's
  // normalisation and resized (bicubic, without crop) to its input size, so that both models see the same view.
  Tensor logits(const Tensor& images) const;

 private:
  Teacher(const models::OpenedModel& opened, const std::string& path, const image::EvalTransform& student,
          kernels::Precision precision);
  Teacher(const models::OpenedModel& opened, const std::string& path, const image::EvalTransform& student);
  Teacher(models::VisionTransformer model, const image::EvalTransform& own, const image::EvalTransform& student,
          kernels::Precision precision);
  void resize(const float* from, float* to, std::vector<float>& rows) const;
  Tensor input_of(const Tensor& images) const;

  std::array<int64_t, 2> size_, student_size_;  // height, width
  int64_t width_;
  uint32_t checksum_;          // checksum of the weights
  std::string preprocessing_;  // description of both models' preprocessing
  infer::Session session_;
  std::unique_ptr<TeacherCache> cache_;
  bool mean_for_new_images_ = false;        // images that are no view get the mean of the cached logits
  std::vector<float> scale_, shift_;        // [C]: from the student's normalisation to the teacher's
  std::vector<float> resize_y_, resize_x_;  // [teacher size, student size]: resizing along each axis
};

}  // namespace vitrail::train
