// SPDX-License-Identifier: Apache-2.0
#include "vitrail/c_api/handles_internal.h"

using namespace vitrail::c_api;

namespace vitrail::c_api {
namespace {

const DualModel& dual_of(const vitrail_model* model) {
  if (const DualModel* const dual = required(model, "model").image_model().dual()) return *dual;
  throw Error(model->path, "a model with a text tower (CLIP, SigLIP)",
              "an image model alone (\"" + model->images().config().architecture + "\")");
}

}  // namespace

std::vector<std::string> strings_of(const char* const* strings, size_t count, const char* name) {
  if (count > 0) required(strings, name);
  std::vector<std::string> result;
  for (size_t i = 0; i < count; ++i) result.emplace_back(&required(strings[i], name));
  return result;
}

}  // namespace vitrail::c_api

extern "C" {

vitrail_status* vitrail_embed_texts(const vitrail_model* model, const char* const* texts, size_t count,
                                    vitrail_tensor** embeddings) {
  return guarded([&] {
    vitrail_tensor*& result = required(embeddings, "embeddings");
    result = new_tensor(dual_of(model).embed_texts(strings_of(texts, count, "texts")));
  });
}

vitrail_status* vitrail_zeroshot(const vitrail_model* model, const vitrail_image* const* images, size_t count,
                                 const char* const* labels, size_t num_labels, const char* const* templates,
                                 size_t num_templates, vitrail_tensor** probabilities) {
  return guarded([&] {
    required(probabilities, "probabilities");
    const vitrail::DualModel& dual = dual_of(model);
    const vitrail::Tensor texts =
        dual.embed_labels(strings_of(labels, num_labels, "labels"), strings_of(templates, num_templates, "templates"));
    const vitrail::Tensor logits = dual.logits(dual.embed_images(views_of(images, count)), texts);
    *probabilities = new_tensor(dual.probabilities(logits));
  });
}

}  // extern "C"
