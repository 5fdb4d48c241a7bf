# Installs the build into a temporary prefix, moves that away (the package must be relocatable), and then configures,
# builds and runs examples/consumer against it.
#     cmake -D BUILD=... -D SOURCE=... -P consumer_test.cmake
set(scratch ${BUILD}/consumer_test)
file(REMOVE_RECURSE ${scratch})
function(run)
  execute_process(COMMAND ${ARGN} COMMAND_ERROR_IS_FATAL ANY)
endfunction()
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${scratch}/first)
file(RENAME ${scratch}/first ${scratch}/moved)

file(GLOB_RECURSE installed ${scratch}/moved/*.cmake)
foreach(file ${installed})
  file(READ ${file} text)
  string(FIND "${text}" "${SOURCE}" at)
  if(NOT at EQUAL -1)
    message(FATAL_ERROR "${file} names the source folder: it would not work on another machine")
  endif()
endforeach()

run(${CMAKE_COMMAND} -S ${SOURCE}/examples/consumer -B ${scratch}/build -G Ninja -D CMAKE_BUILD_TYPE=Release
    -D CMAKE_PREFIX_PATH=${scratch}/moved -D CMAKE_CXX_COMPILER=${CXX})
run(${CMAKE_COMMAND} --build ${scratch}/build)
run(${scratch}/build/consumer)
if(EXISTS ${BUILD}/echelon)
  # The program finds its digits from any folder, without the repository.
  run(${CMAKE_COMMAND} -E chdir ${scratch} ${scratch}/moved/bin/echelon train
      ${scratch}/moved/share/echelon/recipes/demo.toml --set train.steps=3)
  foreach(file man/man1/echelon.1 man/man1/echelon-train.1 bash-completion/completions/echelon
               zsh/vendor-completions/_echelon fish/vendor_completions.d/echelon.fish echelon/examples/houses.csv)
    if(NOT EXISTS ${scratch}/moved/share/${file})
      message(FATAL_ERROR "share/${file} is not installed")
    endif()
  endforeach()
endif()
file(REMOVE_RECURSE ${scratch})
