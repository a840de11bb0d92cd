# cmake -DWEFT=PROGRAM -DTO=FOLDER -P cmake/completion.cmake: write the completions of all shells the program can print, under the
# names by which these find them.
file(MAKE_DIRECTORY ${TO})
foreach(pair "bash weft" "zsh _weft" "fish weft.fish")
  string(REPLACE " " ";" pair ${pair})
  list(GET pair 0 shell)
  list(GET pair 1 name)
  file(MAKE_DIRECTORY ${TO}/${shell})
  execute_process(COMMAND ${WEFT} completion ${shell} OUTPUT_FILE ${TO}/${shell}/${name} COMMAND_ERROR_IS_FATAL ANY)
endforeach()
