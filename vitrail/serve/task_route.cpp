// SPDX-License-Identifier: Apache-2.0
// POST /v1/TASK: images in, the command line's JSON or a rendered image out.
#include "vitrail/serve/image_job_internal.h"
#include "vitrail/serve/png_response_internal.h"
#include "vitrail/serve/routes_internal.h"
#include "vitrail/serve/text_task_internal.h"
#include "vitrail/tasks/item_files.h"

namespace vitrail::serve {
namespace {

HttpResponse file_response(const tasks::Request& request, const ImageOutcome& outcome, const std::string& format) {
  require_result(outcome);
  if (format == "png") return png_response(request.render_png(outcome.item));
  const std::vector<uint8_t> file = request.file(outcome.item, format);
  return {.content_type = "application/octet-stream", .body = {file.begin(), file.end()}};
}

// The files that a result may be, besides JSON.
std::vector<std::string> files_of(const tasks::Task& task) {
  std::vector<std::string> files;
  if (task.can_render) files.emplace_back("png");
  for (const tasks::FileKind& kind : task.files) files.push_back(kind.name);
  return files;
}

}  // namespace

void task_route(const CallPointer& call) {
  RequestOptions& options = call->options();
  RequestImages input = take_images(call->request(), call->engine().options.limits, options, call->parse_budget());
  ImageJob job{.model = call->take_model(call->route()), .request = {}, .decode = {.apply_exif = options.flag("exif")}};
  const tasks::Task& task = *tasks::find_task(call->route(), job.model->loaded());
  const std::vector<std::string> files = files_of(task);
  const std::string format = files.empty() ? "json" : result_format(*call, input.images.size() == 1, files);
  job.render = format != "json";
  tasks::Setting setting{
      .model = job.model->name(), .render = format == "png", .max_pixels = call->engine().options.limits.pixels};
  if (job.render && !setting.render) setting.files = {format};
  const tasks::ItemFiles input_files(task, options);
  for (size_t i = 0; i < input.images.size(); ++i) input.images[i].files = input_files.of(i, input.images.size());
  setting.input_files = input_files.names();
  job.request = task.request(job.model->loaded(), options, setting);
  options.require_all_taken();
  job.request->check(std::ssize(input.images));
  job.finish = [request = job.request, format, single = input.single](std::vector<ImageOutcome>& outcomes) {
    return format == "json" ? list_response(*request, outcomes, single)
                            : file_response(*request, outcomes.front(), format);
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
