// SPDX-License-Identifier: Apache-2.0
// Every global that a pickle may not name: they run code or commands, open files or connections, or read other pickles.
#include "vitrail/weights/pytorch/refused_globals_internal.h"

#include <gtest/gtest.h>

#include <sstream>
#include <string>

namespace vitrail::weights {
namespace {

TEST(RefusedGlobals, AreAllOfTheseModules) {
  std::istringstream modules(
      "_aix_support _osx_support _pickle _posixsubprocess _pyrepl _socket _winapi aiohttp asyncio bdb cProfile "
      "cloudpickle codeop cPickle ctypes dill distutils doctest ensurepip ftplib gc httplib idlelib imaplib "
      "imp importlib jsonpickle lib2to3 linecache marshal mmap msvcrt multiprocessing nt ntpath os paramiko "
      "pathos pdb pexpect pickle pip pkgutil popen2 poplib posix posixpath profile pty py_compile pydoc runpy "
      "setuptools shelve shutil smtplib socket socketserver sqlite3 ssl subprocess sys sysconfig telnetlib "
      "tempfile timeit tkinter trace turtledemo urllib urllib2 venv webbrowser winreg xmlrpc zipimport ");
  int count = 0;
  for (std::string module; modules >> module; ++count) {
    EXPECT_TRUE(is_refused_global(module, "x")) << module;
    EXPECT_TRUE(is_refused_global(module + ".part.of", "x")) << module;
    EXPECT_TRUE(is_refused_global(module, "")) << module;
    EXPECT_TRUE(is_refused_global("mine", module + ".x")) << module << " that another module has imported";
    EXPECT_TRUE(is_refused_global("mine", "a.b." + module + ".x")) << module;
    EXPECT_FALSE(is_refused_global(module + "x", "y")) << module;
    EXPECT_FALSE(is_refused_global("x" + module, "y")) << module;
    EXPECT_FALSE(is_refused_global("mine." + module, "y")) << module << " of another package";
    EXPECT_FALSE(is_refused_global("mine", module)) << module << " is only a name";
  }
  EXPECT_EQ(count, 76);
}

TEST(RefusedGlobals, AreTheseNamesOfOtherModules) {
  const std::pair<const char*, const char*> rows[] = {
      {"builtins",
       "__build_class__ __import__ __loader__ apply breakpoint compile delattr eval exec execfile "
       "exit file getattr globals help input locals open quit raw_input reload setattr vars "},
      {"__builtin__",
       "__build_class__ __import__ __loader__ apply breakpoint compile delattr eval exec execfile "
       "exit file getattr globals help input locals open quit raw_input reload setattr vars "},
      {"__builtins__",
       "__build_class__ __import__ __loader__ apply breakpoint compile delattr eval exec execfile "
       "exit file getattr globals help input locals open quit raw_input reload setattr vars "},
      {"functools", "reduce singledispatch "},
      {"operator", "methodcaller call "},
      {"_operator", "methodcaller call "},
      {"types", "CodeType FunctionType LambdaType MethodType ModuleType "},
      {"io", "open open_code FileIO "},
      {"_io", "open open_code FileIO "},
      {"code", "InteractiveConsole InteractiveInterpreter interact "},
      {"codecs", "open "},
      {"commands", "getoutput getstatus getstatusoutput "},
      {"concurrent", "futures "},
      {"platform", "popen _syscmd_file _syscmd_ver "},
      {"requests", "api delete get patch post put request sessions "},
      {"logging", "FileHandler config.listen config.dictConfig config.fileConfig "},
      {"uuid", "_get_command_stdout _popen "},
      {"yaml", "load unsafe_load full_load load_all unsafe_load_all "},
      {"joblib", "load "},
      {"pandas", "read_pickle eval "},
      {"numpy",
       "load fromfile testing._private.utils.runstring lib.npyio.load lib._npyio_impl.load "
       "f2py.crackfortran "},
      {"keras", "models.load_model "},
      {"tensorflow", "io.read_file io.write_file raw_ops.ReadFile raw_ops.WriteFile "}};
  for (const auto& [module_name, words] : rows) {
    const std::string module = module_name;
    std::istringstream names(words);
    for (std::string name; names >> name;) {
      EXPECT_TRUE(is_refused_global(module, name)) << module << "." << name;
      EXPECT_TRUE(is_refused_global(module, name + ".__call__")) << module << "." << name;
      EXPECT_TRUE(is_refused_global("mine", module + "." + name)) << module << "." << name;
      EXPECT_FALSE(is_refused_global(module, name + "x")) << module << "." << name;
      EXPECT_FALSE(is_refused_global("mine", name)) << name;
      if (const size_t dot = name.rfind('.'); dot != name.npos) {
        EXPECT_TRUE(is_refused_global(module + "." + name.substr(0, dot), name.substr(dot + 1)))
            << module << "." << name;
      }
    }
    EXPECT_FALSE(is_refused_global(module, "x")) << module;
    EXPECT_FALSE(is_refused_global(module, "")) << module;
    EXPECT_FALSE(is_refused_global(module, " ")) << module;
    EXPECT_FALSE(is_refused_global(module + "x", "load")) << module;
  }
}

TEST(RefusedGlobals, ANameIsOneOfTheListAsAWhole) {
  for (const auto& [module, name] : {std::pair("builtins", "evals"),
                                     {"builtins", "eva"},
                                     {"builtins", "val"},
                                     {"builtins", "eval "},
                                     {"builtins", " eval"},
                                     {"torch", "hub"},
                                     {"torch", "hub.download"},
                                     {"torch.hub", "load_"},
                                     {"torch.nn", "load"},
                                     {"numpy.lib", "load"},
                                     {"", ""},
                                     {"", "eval"},
                                     {"os_", "system"}})
    EXPECT_FALSE(is_refused_global(module, name)) << module << "." << name;
  for (const auto& [module, name] : {std::pair("torch.hub", "load"),
                                     {"torch", "hub.load.x"},
                                     {"numpy", "f2py.crackfortran.x"},
                                     {"numpy.f2py", "crackfortran"},
                                     {"numpy.f2py.crackfortran", "x"},
                                     {"", "os.x"},
                                     {"mine", "os."}})
    EXPECT_TRUE(is_refused_global(module, name)) << module << "." << name;
}

}  // namespace
}  // namespace vitrail::weights
