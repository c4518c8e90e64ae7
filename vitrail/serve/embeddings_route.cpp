// SPDX-License-Identifier: Apache-2.0
// POST /v1/embeddings: OpenAI's form, with images as data URIs.
#include <algorithm>
#include <bit>

#include "vitrail/base/base64_internal.h"
#include "vitrail/serve/http_error.h"
#include "vitrail/serve/image_job_internal.h"
#include "vitrail/serve/json_body_internal.h"
#include "vitrail/serve/routes_internal.h"
#include "vitrail/serve/text_task_internal.h"
#include "vitrail/tasks/images/image_model.h"

namespace vitrail::serve {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

// A text, or the tokens of one.
struct TextInput {
  std::string text = {};
  std::vector<int64_t> tokens = {};
};

// The inputs of a request in their order.
struct Inputs {
  std::vector<EncodedImage> images;
  std::vector<TextInput> texts;
  std::vector<bool> is_text;  // whether each input is a text
};

bool is_tokens(const json& value) {
  return value.is_array() && !value.empty() &&
         std::ranges::all_of(value, [](const json& id) { return id.is_number_integer(); });
}

// An input: a text, tokens, "data:…", {"text": "…"} or {"image": "data:…"}, or a part of a message of OpenAI's clients:
// {"type": "image_url", "image_url": {"url": "data:…"}}.
void add_input(const json& input, bool strings_are_images, Inputs& inputs) {
  const std::string where = str("input ", inputs.is_text.size());
  const size_t members = input.is_object() ? input.size() - input.count("type") : 0;
  const auto named = [&](const char* name) { return members == 1 && input.contains(name); };
  const char* const image = named("image") ? "image" : named("image_url") ? "image_url" : nullptr;
  const json& value = named("text") ? input["text"] : image ? input[image] : input;
  const bool is_uri = value.is_string() && value.get_ref<const std::string&>().starts_with("data:");
  if (image || (input.is_string() && (strings_are_images || is_uri))) {
    inputs.is_text.push_back(false);
    inputs.images.push_back({where, image_bytes(value, where)});
    return;
  }
  inputs.is_text.push_back(true);
  if (is_tokens(value)) return inputs.texts.push_back({.tokens = value.get<std::vector<int64_t>>()});
  if (!value.is_string()) throw Error(where, R"(a text, a data URI, {"text": …} or {"image": …})", input.type_name());
  inputs.texts.push_back({.text = value.get<std::string>()});
}

Inputs inputs_of(const json& body, const Limits& limits) {
  Inputs inputs;
  const json& given = member(body, "input");
  const std::string modality = text_member(body, "modality", "");
  if (!modality.empty() && modality != "text" && modality != "image")
    throw Error("modality", "text or image", "'" + modality + "'");
  const bool is_list = given.is_array() && !is_tokens(given);
  const json one = is_list ? json() : json::array({given});
  const json& list = is_list ? given : one;  // a copy of many images would take memory
  if (list.empty()) throw Error("input", "at least one input", "none");
  if (list.size() > limits.images)
    throw HttpError(413, str("at most ", limits.images, " inputs in a request, got ", list.size()));
  for (const json& input : list) add_input(input, modality == "image", inputs);
  return inputs;
}

ordered_json embedding_json(const Tensor& row, bool base64) {
  static_assert(std::endian::native == std::endian::little, "base64 embeddings are little-endian");
  const std::span values(row.data<float>(), static_cast<size_t>(row.numel()));
  if (base64) return to_base64(std::as_bytes(values));
  return std::vector<float>(values.begin(), values.end());
}

// The embeddings [T, D] of the texts, and their number of tokens.
struct TextRows {
  Tensor rows = {};
  int64_t tokens = 0;
};

// The response, from the texts and the rows of the images.
ordered_json response_of(const Inputs& inputs, const ServedModel& model, bool base64, const TextRows& texts,
                         const std::vector<ImageOutcome>& outcomes) {
  ordered_json data = ordered_json::array();
  size_t image = 0;
  int64_t text = 0;
  for (const bool is_text : inputs.is_text) {
    const size_t index = data.size();
    if (!is_text) require_result(outcomes[image]);
    const Tensor row = is_text ? texts.rows.select(0, text++) : outcomes[image++].item.results[0][0];
    data.push_back({{"object", "embedding"}, {"index", index}, {"embedding", embedding_json(row, base64)}});
  }
  const int64_t tokens =
      texts.tokens + static_cast<int64_t>(image) * tasks::as_model<tasks::ImageModel>(model.loaded()).image_tokens();
  return {{"object", "list"},
          {"data", data},
          {"model", model.name()},
          {"usage", {{"prompt_tokens", tokens}, {"total_tokens", tokens}}}};
}

// The name of the requested model; none if clients send a name that they must send.
std::optional<std::string> model_name(const json& body) {
  const std::string name = text_member(body, "model", "");
  return name.empty() ? std::nullopt : std::optional(name);
}

}  // namespace

void embeddings_route(const CallPointer& call) {
  const Limits& limits = call->engine().options.limits;
  const json body = parse_json(call->request().body, limits.json_depth, call->parse_budget());
  auto inputs = std::make_shared<Inputs>(inputs_of(body, limits));
  ImageJob job{.model = call->find_model(model_name(body), "embed"), .request = {}};
  const tasks::ImageModel& images = tasks::as_model<tasks::ImageModel>(job.model->loaded());
  const std::string encoding = text_member(body, "encoding_format", "float");
  if (encoding != "float" && encoding != "base64")
    throw Error("encoding_format", "float or base64", "'" + encoding + "'");
  const int64_t dim = images.embedding_dim();
  if (body.contains("dimensions") && body["dimensions"] != dim)
    throw Error("dimensions", str(dim, ", the size of the model's embeddings"), body["dimensions"].dump());
  call->options().require_all_taken();
  const DualModel* const dual = images.dual();
  if (!dual && !inputs->texts.empty())
    throw Error("input", "images as data URIs, because the model '" + job.model->name() + "' takes no texts", "a text");
  RequestOptions normalized;
  normalized.add("normalize", "");
  job.request = tasks::find_task("embed", job.model->loaded())
                    ->request(job.model->loaded(), normalized, {.model = job.model->name()});
  const auto texts = std::make_shared<TextRows>();
  job.finish = [=, model = job.model](std::vector<ImageOutcome>& outcomes) {
    return json_response(response_of(*inputs, *model, encoding == "base64", *texts, outcomes));
  };
  if (inputs->texts.empty()) return start_images(call, std::move(inputs->images), std::move(job));
  run_text_task(call, inputs->texts.size(), [=, model = job.model](const ProgressCallback& progress) {
    const auto ids_of = [&](size_t i) {
      const TextInput& input = inputs->texts[i];
      std::vector<int64_t> ids = input.tokens.empty() ? dual->token_ids(input.text, str("text ", i)) : input.tokens;
      texts->tokens += std::ssize(ids);
      return ids;
    };
    texts->rows = dual->embed_tokens(inputs->texts.size(), ids_of, true, progress);
    require_unchanged_files(*model);
    std::vector<ImageOutcome> none;
    if (inputs->images.empty()) return call->respond(job.finish(none));
    start_images(call, inputs->images, job);
  });
}

}  // namespace vitrail::serve
