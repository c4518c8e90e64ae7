#pragma once
// A trained model that another learns from (Hinton et al. 2015; Touvron et al. 2021, DeiT).
#include <array>
#include <string>
#include <vector>

#include "vitrail/image/transform.h"
#include "vitrail/models/load.h"

namespace vitrail::train {

class Teacher {
 public:
  // `path`: a model with its preprocessing in its configuration.  `student`: how the images that come are normalised.
  // Throws Error when its classes are not `classes`, in this order (by name where it names them, else by number).
  Teacher(const std::string& path, const image::EvalTransform& student, const std::vector<std::string>& classes);

  // The student's batch [B, C, H, W] → the teacher's logits [B, classes].  The same view: the pictures are normalised
  // anew and resized (bicubic) to what the teacher takes, nothing is cut off.
  Tensor logits(const Tensor& images) const;

 private:
  Teacher(const models::OpenedModel& opened, const std::string& path, const image::EvalTransform& student);
  Tensor input_of(const Tensor& images) const;
  models::VisionTransformer model_;
  std::array<int64_t, 2> size_;
  std::vector<float> scale_, shift_;  // per channel, from the student's values to the teacher's
};

}  // namespace vitrail::train
