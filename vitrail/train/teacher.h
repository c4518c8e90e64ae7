// SPDX-License-Identifier: Apache-2.0
#pragma once
// A trained model that another learns from (Hinton et al. 2015; Touvron et al. 2021, DeiT).
#include <array>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "vitrail/data/loader.h"
#include "vitrail/image/transform.h"
#include "vitrail/infer/session.h"
#include "vitrail/models/load.h"
#include "vitrail/train/recipe.h"
#include "vitrail/train/teacher_cache.h"

namespace vitrail::train {

class Teacher {
 public:
  // `path`: a model with its preprocessing in its configuration.  `student`: how the images that come are normalised.
  // `precision`: of its products.  Throws Error when its classes are not `classes`, in this order (by name where it
  // names them, else by number).
  Teacher(const std::string& path, const image::EvalTransform& student, const std::vector<std::string>& classes,
          kernels::Precision precision = kernels::Precision::fp32);

  // Keeps what it says of each view of the dataset's images in a file in `folder`, where the recipe has views that come
  // back.  The file's name is the checksum of all that decides the answers (the teacher's weights and precision, the
  // data, the views), so recipes that differ in nothing of that share it.
  void remember(const std::filesystem::path& folder, const Recipe& recipe);

  // [B, classes] f32 of the student's batch: remembered where the batch is a view; the mean over the views where it is
  // none and the recipe wants that (view_epochs); else logits().
  Tensor logits(const data::Batch& batch) const;

  // The student's images [B, C, H, W] → the teacher's logits [B, classes].  The same view: the pictures are normalised
  // anew and resized (bicubic) to what the teacher takes, nothing is cut off.
  Tensor logits(const Tensor& images) const;

 private:
  Teacher(const models::OpenedModel& opened, const std::string& path, const image::EvalTransform& student,
          kernels::Precision precision);
  Teacher(models::VisionTransformer model, const image::EvalTransform& own, const image::EvalTransform& student,
          kernels::Precision precision);
  void resize(const float* from, float* to, std::vector<float>& rows) const;
  Tensor input_of(const Tensor& images) const;
  std::array<int64_t, 2> size_, student_size_;  // height, width
  int64_t classes_;
  uint32_t checksum_;     // of the weights
  std::string pictures_;  // how the student's and the teacher's are made of the dataset's
  infer::Session session_;
  std::unique_ptr<TeacherCache> cache_;
  bool mean_elsewhere_ = false;       // of what it said of an image's views, for pictures that are none
  std::vector<float> scale_, shift_;  // per channel, from the student's values to the teacher's
  std::vector<float> down_, across_;  // resize along y and x, from the student's size to the teacher's
};

}  // namespace vitrail::train
