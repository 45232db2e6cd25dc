#!/usr/bin/env escript
%% Processes that pass lists on, and a tree of numbers.
main(_) ->
    Own = self(),
    [spawn(fun() -> Own ! {done, lists:sum([X * X rem 7 || X <- lists:seq(1, 20000)])} end) || _ <- lists:seq(1, 60)],
    Sums = [receive {done, Sum} -> Sum end || _ <- lists:seq(1, 60)],
    Tree = lists:foldl(fun(X, T) -> gb_trees:enter(X * 7919 rem 100003, X, T) end, gb_trees:empty(), lists:seq(1, 60000)),
    io:format("~p ~p~n", [lists:sum(Sums), gb_trees:size(Tree)]).
