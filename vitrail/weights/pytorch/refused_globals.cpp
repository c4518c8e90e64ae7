// SPDX-License-Identifier: Apache-2.0
#include "vitrail/weights/pytorch/refused_globals_internal.h"

#include <algorithm>
#include <string>

namespace vitrail::weights {
namespace {

// Modules that are refused with everything in them: processes, network, files, code, and other unpicklers.
constexpr std::string_view kModules[] = {"_aix_support",
                                         "_osx_support",
                                         "_pickle",
                                         "_posixsubprocess",
                                         "_pyrepl",
                                         "_socket",
                                         "_winapi",
                                         "aiohttp",
                                         "asyncio",
                                         "bdb",
                                         "cProfile",
                                         "cloudpickle",
                                         "codeop",
                                         "cPickle",
                                         "ctypes",
                                         "dill",
                                         "distutils",
                                         "doctest",
                                         "ensurepip",
                                         "ftplib",
                                         "gc",
                                         "httplib",
                                         "idlelib",
                                         "imaplib",
                                         "imp",
                                         "importlib",
                                         "jsonpickle",
                                         "lib2to3",
                                         "linecache",
                                         "marshal",
                                         "mmap",
                                         "msvcrt",
                                         "multiprocessing",
                                         "nt",
                                         "ntpath",
                                         "os",
                                         "paramiko",
                                         "pathos",
                                         "pdb",
                                         "pexpect",
                                         "pickle",
                                         "pip",
                                         "pkgutil",
                                         "popen2",
                                         "poplib",
                                         "posix",
                                         "posixpath",
                                         "profile",
                                         "pty",
                                         "py_compile",
                                         "pydoc",
                                         "runpy",
                                         "setuptools",
                                         "shelve",
                                         "shutil",
                                         "smtplib",
                                         "socket",
                                         "socketserver",
                                         "sqlite3",
                                         "ssl",
                                         "subprocess",
                                         "sys",
                                         "sysconfig",
                                         "telnetlib",
                                         "tempfile",
                                         "timeit",
                                         "tkinter",
                                         "trace",
                                         "turtledemo",
                                         "urllib",
                                         "urllib2",
                                         "venv",
                                         "webbrowser",
                                         "winreg",
                                         "xmlrpc",
                                         "zipimport"};

// Single names of other modules.  A module here includes its submodules.
struct Names {
  std::string_view module, names;  // the names are separated by spaces
};
constexpr std::string_view kBuiltins =
    " __build_class__ __import__ __loader__ apply breakpoint compile delattr eval exec execfile exit file getattr "
    "globals "
    "help input locals open quit raw_input reload setattr vars ";
constexpr Names kNames[] = {
    {"builtins", kBuiltins},
    {"__builtin__", kBuiltins},
    {"__builtins__", kBuiltins},
    {"functools", " reduce singledispatch "},  // partial() calls nothing, and its function is refused by its own name
    {"operator", " methodcaller call "},
    {"_operator", " methodcaller call "},
    {"types", " CodeType FunctionType LambdaType MethodType ModuleType "},
    {"io", " open open_code FileIO "},
    {"_io", " open open_code FileIO "},
    {"code", " InteractiveConsole InteractiveInterpreter interact "},
    {"codecs", " open "},
    {"commands", " getoutput getstatus getstatusoutput "},
    {"concurrent", " futures "},
    {"platform", " popen _syscmd_file _syscmd_ver "},
    {"requests", " api delete get patch post put request sessions "},
    {"logging", " FileHandler config.listen config.dictConfig config.fileConfig "},
    {"uuid", " _get_command_stdout _popen "},
    {"yaml", " load unsafe_load full_load load_all unsafe_load_all "},
    {"joblib", " load "},
    {"pandas", " read_pickle eval "},
    {"numpy", " load fromfile testing._private.utils.runstring lib.npyio.load lib._npyio_impl.load f2py.crackfortran "},
    {"torch",
     " load jit.load hub.load hub.load_state_dict_from_url serialization.load storage._load_from_bytes "
     "_utils_internal.prepare_multiprocessing_environment utils.cpp_extension.load "
     "utils.cpp_extension.load_inline utils._config_module.load_config utils.collect_env.run "
     "_inductor.codecache.compile_file _dynamo.guards.GuardBuilder.get jit.unsupported_tensor_ops.execWrapper "
     "fx.experimental.symbolic_shapes.ShapeEnv.evaluate_guards_expression utils.bottleneck.__main__.run_cprofile "
     "utils.data.datapipes.utils.decoder.basichandlers utils.model_zoo.load_url ops.load_library "
     "classes.load_library package.PackageImporter "},
    {"keras", " models.load_model "},
    {"tensorflow", " io.read_file io.write_file raw_ops.ReadFile raw_ops.WriteFile "},
};

bool begins_with_module(std::string_view path, std::string_view module) {
  return path.starts_with(module) && (path.size() == module.size() || path[module.size()] == '.');
}

// A name in a file may be empty or end with a space, so that a match may reach the end of the words.
bool contains_word(std::string_view words, std::string_view word) {
  for (size_t at = words.find(word); at != std::string_view::npos; at = words.find(word, at + 1)) {
    const size_t end = at + word.size();
    if (at > 0 && words[at - 1] == ' ' && end < words.size() && words[end] == ' ') return true;
  }
  return false;
}

// Whether the words contain the path or what it is an attribute of: "eval.__call__" is eval's.
bool contains_path(std::string_view words, std::string_view path) {
  for (size_t dot = path.find('.'); dot != std::string_view::npos; dot = path.find('.', dot + 1)) {
    if (contains_word(words, path.substr(0, dot))) return true;
  }
  return contains_word(words, path);
}

// path: "module.name"
bool is_refused_path(std::string_view path) {
  if (std::ranges::any_of(kModules, [&](std::string_view module) { return begins_with_module(path, module); })) {
    return true;
  }
  return std::ranges::any_of(kNames, [&](const Names& row) {
    if (!begins_with_module(path, row.module) || path.size() == row.module.size()) return false;
    return contains_path(row.names, path.substr(row.module.size() + 1));
  });
}

}  // namespace

bool is_refused_global(std::string_view module, std::string_view name) {
  const std::string path = std::string(module) + "." + std::string(name);
  if (is_refused_path(path)) return true;
  // A dotted name reaches what its module has imported: torch, "hub.os.system".
  for (size_t dot = name.find('.'); dot != std::string_view::npos; dot = name.find('.')) {
    if (is_refused_path(name)) return true;
    name.remove_prefix(dot + 1);
  }
  return false;
}

}  // namespace vitrail::weights
