// SPDX-License-Identifier: Apache-2.0
// POST /v1/TASK: images in, the command line's JSON or a rendered image out.
#include <algorithm>
#include <utility>

#include "vitrail/serve/image_job_internal.h"
#include "vitrail/serve/png_response_internal.h"
#include "vitrail/serve/routes_internal.h"
#include "vitrail/serve/text_task_internal.h"
#include "vitrail/tasks/item_files.h"

namespace vitrail::serve {
namespace {

// The file of one image, or a joint one of them all.
HttpResponse file_response(const tasks::Task& task, const tasks::Request& request,
                           const std::vector<ImageOutcome>& outcomes, const std::string& format) {
  for (const ImageOutcome& outcome : outcomes) require_result(outcome);
  if (format == "png") return png_response(request.render_png(outcomes.front().item));
  const tasks::FileKind& kind = *std::ranges::find(task.files, format, &tasks::FileKind::name);
  HttpResponse response{.content_type = kind.media_type, .body = kind.joint ? kind.start : ""};
  bool has_parts = false;
  for (const ImageOutcome& outcome : outcomes) {
    const std::vector<uint8_t> part = request.file(outcome.item, format);
    if (part.empty()) continue;
    if (std::exchange(has_parts, true)) response.body += kind.separator;
    response.body.append(part.begin(), part.end());
  }
  if (kind.joint) response.body += kind.end;
  return response;
}

// The files that a result may be, besides JSON.
std::vector<ResultFile> files_of(const tasks::Task& task) {
  std::vector<ResultFile> files;
  if (task.can_render) files.push_back({"png"});
  for (const tasks::FileKind& kind : task.files) files.push_back({kind.name, kind.joint});
  return files;
}

}  // namespace

void task_route(const CallPointer& call) {
  RequestOptions& options = call->options();
  RequestImages input = take_images(call->request(), call->engine().options.limits, options, call->parse_budget());
  ImageJob job{.model = call->take_model(call->route()), .request = {}, .decode = {.apply_exif = options.flag("exif")}};
  const tasks::Task& task = *tasks::find_task(call->route(), job.model->loaded());
  const std::vector<ResultFile> files = files_of(task);
  const std::string format = files.empty() ? "json" : result_format(*call, input.images.size() == 1, files);
  const bool renders = format == "png";
  tasks::Setting setting{
      .model = job.model->name(), .render = renders, .max_pixels = call->engine().options.limits.pixels};
  if (format != "json" && !renders) setting.files = {format};
  job.render = renders || std::ranges::any_of(task.files, [&](const tasks::FileKind& kind) {
                 return kind.name == format && !kind.joint;
               });
  const tasks::ItemFiles input_files(task, options);
  for (size_t i = 0; i < input.images.size(); ++i) input.images[i].files = input_files.of(i, input.images.size());
  setting.input_files = input_files.names();
  setting.open = [&](const std::string& option, const std::string& name) {
    const ModelPointer& other = job.others.emplace_back(call->engine().models.find(name, "", option));
    return std::shared_ptr<const tasks::LoadedModel>(other, &other->loaded());
  };
  job.request = task.request(job.model->loaded(), options, setting);
  options.require_all_taken();
  job.request->check(std::ssize(input.images));
  job.finish = [&task, request = job.request, format, single = input.single](std::vector<ImageOutcome>& outcomes) {
    return format == "json" ? list_response(*request, outcomes, single)
                            : file_response(task, *request, outcomes, format);
  };
  const int64_t texts = job.request->texts();
  if (texts == 0) return start_images(call, std::move(input.images), std::move(job));
  run_text_task(call, static_cast<size_t>(texts),
                [call, job, images = std::move(input.images)](const ProgressCallback& progress) mutable {
                  job.request->prepare(progress);
                  start_images(call, std::move(images), std::move(job));
                });
}

}  // namespace vitrail::serve
