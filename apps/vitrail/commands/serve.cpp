// SPDX-License-Identifier: Apache-2.0
#include <csignal>
#include <filesystem>
#include <memory>
#include <mutex>

#include "apps/vitrail/commands/commands.h"
#include "apps/vitrail/input/open_files.h"
#include "apps/vitrail/output/output.h"
#include "apps/vitrail/shell/field_options.h"
#include "apps/vitrail/shell/usage_errors.h"
#include "vitrail/base/callbacks.h"
#include "vitrail/base/env_internal.h"
#include "vitrail/base/error.h"
#include "vitrail/base/memory_limit.h"
#include "vitrail/base/read_file.h"
#include "vitrail/serve/server.h"

namespace vitrail::app {
namespace {

struct ServeCommandOptions {
  serve::ServeOptions server;
  std::vector<std::string> models, limits;
  std::string api_key_file;
  bool log = false;
};

// "NAME=MODEL", or MODEL, whose name is that of its file or folder.
serve::ModelSource model_source(const std::string& argument) {
  const size_t equals = argument.find('=');
  std::error_code unknown;
  if (equals != argument.npos && !std::filesystem::exists(argument, unknown))
    return {argument.substr(0, equals), argument.substr(equals + 1)};
  const std::filesystem::path path(argument);
  const std::filesystem::path named = path.has_filename() ? path : path.parent_path();
  return {named.extension() == ".safetensors" ? named.stem().string() : named.filename().string(), argument};
}

// The key is not an option, because other users of a machine see the arguments of programs.
std::string api_key(const ServeCommandOptions& options) {
  if (options.api_key_file.empty()) return environment("VITRAIL_API_KEY").value_or("");
  std::string key = read_text_file(options.api_key_file);
  while (!key.empty() && (key.back() == '\n' || key.back() == '\r')) key.pop_back();
  if (key.empty()) throw Error(options.api_key_file, "a key", "an empty file");
  return key;
}

serve::ServeOptions server_options(const ServeCommandOptions& options, const GlobalOptions& global) {
  serve::ServeOptions server = options.server;
  server.limits = serve::limits_within(memory_limit());
  for (const std::string& model : options.models) server.models.push_back(model_source(model));
  server.model = session_options_of(ModelOptions{}, global);
  server.api_key = api_key(options);
  for (const std::string& limit : options.limits) {
    const size_t equals = std::min(limit.find('='), limit.size());
    serve::set_limit(server.limits, limit.substr(0, equals), limit.substr(std::min(equals + 1, limit.size())));
  }
  if (options.log) {
    server.log = [](const std::string& line) {
      static std::mutex mutex;
      const std::lock_guard lock(mutex);
      write_output(line + "\n");
      flush_output();
    };
  }
  return server;
}

std::string address_of(const serve::ServeOptions& options, const serve::Server& server) {
  if (!options.unix_path.empty()) return options.unix_path;
  const bool v6 = options.host.find(':') != options.host.npos;
  return fmt::format("http://{}:{}", v6 ? "[" + options.host + "]" : options.host, server.port());
}

// What a failed reload means for the models before.
std::string failed_reload(const std::string& error, const std::vector<std::string>& changed) {
  if (changed.empty()) return "the models before remain: " + error;
  return fmt::format("{}; until a reload succeeds, these models cannot be used: {}", error, fmt::join(changed, ", "));
}

// Waits for a signal to end, and loads the models again at each SIGHUP.
void wait_for_end(const sigset_t& signals, serve::Server& server) {
  while (true) {
    int signal = 0;
    ::sigwait(&signals, &signal);
    if (signal != SIGHUP) return;
    try {
      server.load();
      print_note("vitrail: models loaded again");
    } catch (const std::exception& error) {
      print_error(failed_reload(error.what(), server.changed_models()));
    }
  }
}

// Without enough files, further connections would wait without a response.  With fewer connections they are refused.
void fit_to_open_files(size_t& connections) {
  const size_t fitting = fit_connections(connections);
  if (fitting < connections) {
    warn(fmt::format(
        "the limit of open files (ulimit -Hn) permits {} connections, not {}: raise it, or give --limit connections={}",
        fitting, connections, fitting));
  }
  connections = fitting;
}

int serve_models(const ServeCommandOptions& options, const GlobalOptions& global) {
  serve::ServeOptions settings = server_options(options, global);  // may wait for a key from a pipe
  sigset_t signals;
  ::sigemptyset(&signals);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) ::sigaddset(&signals, signal);
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);  // also in the threads that start below
  fit_to_open_files(settings.limits.connections);
  serve::Server server(settings);
  server.load();
  if (!global.quiet) print_note("vitrail: serving on " + address_of(settings, server));
  wait_for_end(signals, server);
  ::pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);  // a second signal ends the process at once
  if (server.drain()) return 0;
  print_error("requests were in flight when the time limit passed");
  return 1;
}

void add_endpoint_to(CLI::App& command, ServeCommandOptions& options) {
  command.add_option("--host", options.server.host, "Address to listen on")->capture_default_str();
  command.add_option("--port", options.server.port, "Port; 0 takes a free one")
      ->capture_default_str()
      ->check(CLI::Range(0, 65535));
  command.add_option("--unix", options.server.unix_path, "Unix socket to listen on instead of an address");
  command.add_option("--api-key-file", options.api_key_file,
                     "File with the key that requests must carry (default: VITRAIL_API_KEY; without, none)");
  command.add_flag("--public", options.server.public_without_key,
                   "Permit an address that other machines can reach without a key");
  command
      .add_option("--cors", options.server.cors,
                  "Origin, as https://example.org, whose web pages may use the server; may be repeated")
      ->allow_extra_args(false);
}

}  // namespace

void add_serve(CLI::App& program, const GlobalOptions& global, Run& run) {
  auto options = std::make_shared<ServeCommandOptions>();
  CLI::App* command = program.add_subcommand("serve", "Serve models over HTTP");
  command->footer(
      "Example: vitrail serve -m photos=runs/photos\n"
      "         curl --data-binary @photo.jpg 'http://127.0.0.1:8080/v1/classify?top=3'");
  command
      ->add_option("-m,--model", options->models,
                   "Model, as for classify, or NAME=MODEL; may be repeated (default: the bundled models)")
      ->allow_extra_args(false);
  add_endpoint_to(*command, *options);
  add_field_options(*command, [options](Fields& f) {
    serve::ServeOptions& server = options->server;
    f.integer({"batch", "Largest batch"}, server.batch, 1, 1024);
    f.number({"delay", "Time in ms for which an image waits for others to fill a batch; 0: what waits is batched"},
             server.delay_ms, {0, 10'000});
    f.integer({"decode_threads", "Number of threads that decode images (default: all cores)"}, server.decode_threads, 1,
              1024);
  });
  command
      ->add_option("--limit", options->limits,
                   "NAME=VALUE: a limit of docs/serving.md, as body-bytes=67108864; may be repeated")
      ->allow_extra_args(false);
  command->add_flag("--model-control", options->server.model_control, "Permit clients to load and unload the models");
  command->add_flag("--log", options->log, "Write a line of JSON for each request to standard output");
  command->callback([options, &global, &run] { run = [options, &global] { return serve_models(*options, global); }; });
}

}  // namespace vitrail::app
