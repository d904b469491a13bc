-- A lasting fact that was resolved is listed again, numbered.
SELECT @merchant_id AS merchant_id, @mode AS mode, @subject AS subject, @reason AS reason, @fact_id || ' #' || (count(*) + 1)::TEXT AS fact_id,
    @provider AS provider, @detail AS detail, @now AS at
FROM exceptions
WHERE merchant_id = @merchant_id AND mode = @mode AND subject = @subject AND reason = @reason
    AND (fact_id = @fact_id OR left(fact_id, length(@fact_id) + 2) = @fact_id || ' #')
HAVING bool_and(resolved_at IS NOT NULL AND resolved_at < @now)
