// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the handles of the C interface stand for, and the border that no exception crosses.
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "vitrail/base/error.h"
#include "vitrail/c_api.h"
#include "vitrail/image/image_view.h"
#include "vitrail/sam/predictor.h"
#include "vitrail/tasks/images/image_model.h"

struct vitrail_status {
  vitrail_code code;
  std::string message;
  vitrail::Error::Parts parts;
};

struct vitrail_tensor {
  vitrail::Tensor values;  // f32, contiguous
};

struct vitrail_image {
  std::optional<vitrail::image::Image> pixels;  // unset: the caller's
  vitrail::image::ImageView view;
};

struct vitrail_model {
  std::unique_ptr<vitrail::tasks::LoadedModel> loaded;
  std::string path, config;
  std::vector<std::string> class_names;
  vitrail::tasks::OpenOptions option_models = {};  // what models that options name are opened with
  mutable std::mutex mutex = {};
  mutable std::map<std::string, std::shared_ptr<const vitrail::tasks::LoadedModel>> others = {};  // those, by path

  // Throw Error for a model of another family.
  const vitrail::tasks::ImageModel& image_model() const;
  const vitrail::Model& images() const { return image_model().images(); }
};

struct vitrail_image_embedding {
  vitrail::sam::ImageEmbedding embedding;
};

namespace vitrail::c_api {

// The status of the exception that is being handled.  Never throws.
vitrail_status* status_of_exception() noexcept;

// Calls a function; what it throws becomes a status.
template <class F>
vitrail_status* guarded(const F& function) noexcept {
  try {
    function();
    return nullptr;
  } catch (...) {
    return status_of_exception();
  }
}

// Throws Error if a required argument is null.  A result's own pointer is checked before the result is made: an
// assignment evaluates its right side first, and the result would be lost.
template <class T>
T& required(T* argument, const char* name) {
  if (!argument) throw Error(name, "a pointer", "NULL");
  return *argument;
}

// The fields that a caller knows, over the defaults.  Throws Error for a size that no version had.
template <class Options>
Options options_or(const Options* given, Options result, const char* name) {
  if (!given) return result;
  if (given->struct_size < sizeof(size_t) || given->struct_size > sizeof(Options)) {
    throw Error(str(name, ".struct_size"), str("at most ", sizeof(Options)), str(given->struct_size));
  }
  std::copy_n(reinterpret_cast<const std::byte*>(given), given->struct_size, reinterpret_cast<std::byte*>(&result));
  return result;
}

std::vector<image::ImageView> views_of(const vitrail_image* const* images, size_t count);
std::vector<std::string> strings_of(const char* const* strings, size_t count, const char* name);
vitrail_tensor* new_tensor(const Tensor& values);

}  // namespace vitrail::c_api
