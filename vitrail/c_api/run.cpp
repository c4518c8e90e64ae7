// SPDX-License-Identifier: Apache-2.0
#include "vitrail/tasks/run.h"

#include <algorithm>

#include "vitrail/base/text.h"
#include "vitrail/c_api/handles_internal.h"
#include "vitrail/tasks/item_files.h"
#include "vitrail/tasks/option_model.h"

struct vitrail_text {
  std::string text;
  std::unique_ptr<vitrail::tasks::Request> request;
  std::vector<vitrail::tasks::Item> items;  // with their photos if `format` is a file
  std::string format = "json";
  std::vector<uint8_t> file = {};  // the last one of vitrail_run_file()
};

namespace vitrail::c_api {
namespace {

tasks::RequestOptions request_options(const std::vector<std::string>& given) {
  tasks::RequestOptions options;
  for (const std::string& option : given) {
    const size_t equals = std::min(option.find('='), option.size());
    options.add(option.substr(0, equals), option.substr(std::min(equals + 1, option.size())));
  }
  return options;
}

const tasks::Task& task_for(const vitrail_model& model, const std::string& name) {
  if (const tasks::Task* const task = tasks::find_task(name, *model.loaded)) return *task;
  std::vector<std::string> known = tasks::task_names();
  std::erase_if(known, [&](const std::string& each) { return !tasks::find_task(each, *model.loaded); });
  throw Error("task", "one that the model is for: " + join(known), "'" + name + "'");
}

// Models that options name stay open with the model, for its next images.
std::shared_ptr<const tasks::LoadedModel> option_model_of(const vitrail_model& model, const std::string& option,
                                                          const std::string& path) {
  const std::lock_guard lock(model.mutex);
  auto& other = model.others[path];
  if (!other) other = tasks::open_option_model(option, path, model.option_models);
  return other;
}

// A file about all images is not the file of one.
std::string format_of(const tasks::Task& task, tasks::RequestOptions& options) {
  std::vector<std::string> formats{"json"};
  if (task.can_render) formats.emplace_back("png");
  for (const tasks::FileKind& kind : task.files)
    if (!kind.joint) formats.push_back(kind.name);
  std::string format = options.text("format").value_or("json");
  if (std::ranges::find(formats, format) == formats.end())
    throw Error("format", "one of " + join(formats), "'" + format + "'");
  return format;
}

vitrail_text run(const vitrail_model& model, const tasks::Task& task, const std::vector<image::ImageView>& images,
                 tasks::RequestOptions options) {
  const tasks::ItemFiles files(task, options);
  const auto open = [&](const std::string& option, const std::string& path) {
    return option_model_of(model, option, path);
  };
  const std::string format = format_of(task, options);
  tasks::Setting setting{.model = model.path, .render = format == "png", .input_files = files.names(), .open = open};
  if (format != "json" && !setting.render) setting.files = {format};
  std::unique_ptr<tasks::Request> request = task.request(*model.loaded, options, setting);
  options.require_all_taken();
  std::vector<tasks::Item> items;
  for (const image::ImageView& view : images) {
    items.push_back({.name = str("image ", items.size()), .input_files = files.of(items.size(), images.size())});
    items.back().photo = image::to_image(view, model.loaded->color_mode());
  }
  tasks::run(*model.loaded, *request, items);
  std::string text = "[" + join(items, ",", [&](const tasks::Item& item) { return request->json(item); }) + "]";
  if (format == "json")
    for (tasks::Item& item : items) item.photo = {};
  return {std::move(text), std::move(request), std::move(items), format};
}

const tasks::Item& item_of(const vitrail_text& results, size_t index) {
  if (index >= results.items.size()) throw Error("index", str("one of ", results.items.size(), " images"), str(index));
  return results.items[index];
}

std::vector<uint8_t> file_of(const vitrail_text& results, size_t index) {
  const tasks::Item& item = item_of(results, index);
  if (results.format == "json")
    throw Error("results", "those of vitrail_run with the option format", "those without it");
  return results.format == "png" ? results.request->render_png(item) : results.request->file(item, results.format);
}

Tensor array_of(const vitrail_text& results, size_t index, const std::string& name) {
  const tasks::Item& item = item_of(results, index);
  const std::vector<tasks::Output> outputs = results.request->outputs();
  const auto output = std::ranges::find(outputs, name, &tasks::Output::name);
  if (output == outputs.end())
    throw Error("name", "one of " + join(outputs, ", ", &tasks::Output::name), "'" + name + "'");
  return results.request->array(item, static_cast<size_t>(output - outputs.begin()));
}

}  // namespace
}  // namespace vitrail::c_api

extern "C" {

vitrail_status* vitrail_run(const vitrail_model* model, const char* task, const vitrail_image* const* images,
                            size_t count, const char* const* options, size_t num_options, vitrail_text** json) {
  using namespace vitrail::c_api;
  return guarded([&] {
    vitrail_text*& result = required(json, "json");
    const vitrail_model& opened = required(model, "model");
    const vitrail::tasks::Task& wanted = task_for(opened, &required(task, "task"));
    result = new vitrail_text{
        run(opened, wanted, views_of(images, count), request_options(strings_of(options, num_options, "options")))};
  });
}

vitrail_status* vitrail_run_array(const vitrail_text* results, size_t index, const char* name, vitrail_tensor** array) {
  using namespace vitrail::c_api;
  return guarded([&] {
    vitrail_tensor*& result = required(array, "array");
    result = new_tensor(array_of(required(results, "results"), index, &required(name, "name")));
  });
}

vitrail_status* vitrail_run_file(vitrail_text* results, size_t index, const uint8_t** bytes, size_t* size) {
  using namespace vitrail::c_api;
  return guarded([&] {
    const uint8_t*& first = required(bytes, "bytes");
    size_t& count = required(size, "size");
    vitrail_text& run = required(results, "results");
    run.file = file_of(run, index);
    first = run.file.data();
    count = run.file.size();
  });
}

const char* vitrail_text_data(const vitrail_text* text) { return text->text.c_str(); }
void vitrail_text_free(vitrail_text* text) { delete text; }

}  // extern "C"
