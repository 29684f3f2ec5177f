# What the native parts have in common: options, the language, sanitizers, Python modules.
include_guard() # In the folder that builds, and by that in all below it.

option(TRUNKLINE_TESTS "Build the native tests with everything else, and need no Python" OFF)
option(TRUNKLINE_FUZZ "Build the fuzz targets: with libFuzzer under clang, else to run over kept inputs" OFF)
set(TRUNKLINE_SANITIZE "" CACHE STRING "Sanitizers to build with, for example address,undefined")
if(TRUNKLINE_TESTS OR TRUNKLINE_FUZZ)
  option(TRUNKLINE_PYTHON "Build the Python modules" OFF)
else()
  option(TRUNKLINE_PYTHON "Build the Python modules" ON)
endif()

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "" FORCE)
endif()
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)

# Build a library, and all that links it, with the sanitizers that were asked for.
function(trunkline_sanitize library)
  if(TRUNKLINE_SANITIZE)
    target_compile_options(${library} PUBLIC -fsanitize=${TRUNKLINE_SANITIZE} -fno-sanitize-recover=all
                                             -fno-omit-frame-pointer)
    target_link_options(${library} PUBLIC -fsanitize=${TRUNKLINE_SANITIZE})
  endif()
endfunction()

# The test binary `name` of the sources in `tests`, which share the headers named last. Without -DTRUNKLINE_TESTS=ON
# it is built when it is asked for.
function(trunkline_tests name library)
  find_path(DOCTEST_INCLUDE_DIR doctest/doctest.h)
  if(NOT DOCTEST_INCLUDE_DIR)
    if(TRUNKLINE_TESTS)
      message(FATAL_ERROR "the native tests need doctest (Debian: doctest-dev)")
    endif()
    return()
  endif()
  file(GLOB test_sources CONFIGURE_DEPENDS tests/*.cpp)
  add_executable(${name} ${test_sources})
  if(NOT TRUNKLINE_TESTS)
    set_target_properties(${name} PROPERTIES EXCLUDE_FROM_ALL ON)
  endif()
  target_include_directories(${name} PRIVATE ${DOCTEST_INCLUDE_DIR} tests)
  # Most of the work of compiling a test is to read headers; what takes long runs in the library.
  target_precompile_headers(${name} PRIVATE <doctest/doctest.h> <algorithm> <filesystem> <memory> <string> <thread>
                                            <vector> ${ARGN})
  set_source_files_properties(tests/main.cpp PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
  target_compile_options(${name} PRIVATE -Wall -Wextra -O1 -g1)
  target_link_libraries(${name} PRIVATE ${library})
endfunction()

# With -DTRUNKLINE_FUZZ=ON, one program per fuzz/fuzz_*.cpp; its kept inputs lie in fuzz/corpus/<name>. Without
# clang's libFuzzer, the programs run over kept inputs and mutations of them.
set(TRUNKLINE_FUZZ_FOLDER ${CMAKE_CURRENT_LIST_DIR}/fuzz)
function(trunkline_fuzz_targets library)
  if(NOT TRUNKLINE_FUZZ)
    return()
  endif()
  if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    target_compile_options(${library} PUBLIC -fsanitize=fuzzer-no-link)
  elseif(NOT TARGET trunkline_fuzz_main)
    add_library(trunkline_fuzz_main OBJECT ${TRUNKLINE_FUZZ_FOLDER}/standalone.cpp)
  endif()
  file(GLOB fuzz_sources CONFIGURE_DEPENDS fuzz/fuzz_*.cpp)
  foreach(source ${fuzz_sources})
    get_filename_component(name ${source} NAME_WE)
    add_executable(${name} ${source})
    target_include_directories(${name} PRIVATE ${TRUNKLINE_FUZZ_FOLDER})
    target_compile_options(${name} PRIVATE -Wall -Wextra)
    target_link_libraries(${name} PRIVATE ${library})
    if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
      target_link_options(${name} PRIVATE -fsanitize=fuzzer)
    else()
      target_link_libraries(${name} PRIVATE trunkline_fuzz_main)
    endif()
  endforeach()
endfunction()

# The Python module `name` of the sources in `bindings` and of those that all modules share, installed into the
# package `package`.
set(TRUNKLINE_BINDINGS_FOLDER ${CMAKE_CURRENT_LIST_DIR}/bindings)
macro(trunkline_python_module name package)
  find_package(Python 3.11 REQUIRED COMPONENTS Interpreter Development.Module)
  execute_process(COMMAND ${Python_EXECUTABLE} -m nanobind --cmake_dir
                  OUTPUT_STRIP_TRAILING_WHITESPACE OUTPUT_VARIABLE nanobind_ROOT)
  find_package(nanobind CONFIG REQUIRED)
  file(GLOB binding_sources CONFIGURE_DEPENDS bindings/*.cpp ${TRUNKLINE_BINDINGS_FOLDER}/*.cpp)
  nanobind_add_module(${name} NB_STATIC ${binding_sources})
  target_include_directories(${name} PRIVATE ${TRUNKLINE_BINDINGS_FOLDER})
  install(TARGETS ${name} LIBRARY DESTINATION ${package})
endmacro()
